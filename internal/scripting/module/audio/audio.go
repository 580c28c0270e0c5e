// Package audio is the audio module of scripts: it reads, changes and writes sound as
// samples. Samples are passed between script and host as packed bytes, four each; the
// prelude makes them look like a list.
package audio

import (
	"context"
	_ "embed"
	"encoding/binary"
	"io"
	"math"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed audio.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global audio.
func Module() host.Module {
	return host.Module{Name: "audio", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "read_wav", Kind: host.Read, Effect: readWAV},
		{Name: "write_wav", Kind: host.Idempotent, Path: 1, Effect: writeWAV},
		{Name: "info", Kind: host.Read, Effect: info},
		{Name: "silence", Pure: silence},
		{Name: "__decode", Hidden: true, Pure: decode},
		{Name: "__encode", Hidden: true, Pure: encode},
		{Name: "__measure", Hidden: true, Pure: measure},
		{Name: "__change", Hidden: true, Pure: change},
		{Name: "__join", Hidden: true, Pure: join},
	}}
}

// file returns the WAV file that argument 1 names by path or hash.
func file(ctx context.Context, w *host.Services, args host.Args) (audio.Clip, audio.Format, error) {
	name, err := args.String(1)
	if err != nil {
		return audio.Clip{}, audio.Format{}, err
	}
	f, err := w.Open(ctx, name)
	if err != nil {
		return audio.Clip{}, audio.Format{}, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, audio.MaxSize+1))
	if err != nil {
		return audio.Clip{}, audio.Format{}, fault.Wrap(fault.InvalidParams, err, "read %s", name)
	}
	return audio.Decode(data)
}

func readWAV(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	c, f, err := file(ctx, w, args)
	if err != nil {
		return nil, err
	}
	table, err := describe(c, f)
	return append(values(c), table), err
}

func info(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	c, f, err := file(ctx, w, args)
	if err != nil {
		return nil, err
	}
	table, err := describe(c, f)
	return []host.Value{table}, err
}

// describe returns a summary of a file and its format.
func describe(c audio.Clip, f audio.Format) (host.Value, error) {
	return host.Table(struct {
		audio.Info
		Bits  int  `json:"bits"`
		Float bool `json:"float"`
	}{c.Info(), f.Bits, f.Float})
}

// writeWAV(path, clip…, bits) writes a file.
func writeWAV(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	c, err := clip(args, 2)
	if err != nil {
		return nil, err
	}
	data, err := encoded(c, args, 5)
	if err != nil {
		return nil, err
	}
	return []host.Value{path}, w.Files.Write(path, data, false)
}

func encoded(c audio.Clip, args host.Args, bits int) ([]byte, error) {
	n, err := args.OptInt(bits, 16)
	if err != nil {
		return nil, err
	}
	return c.Encode(int(n))
}

func decode(args host.Args) ([]host.Value, error) {
	data, err := args.String(1)
	if err != nil {
		return nil, err
	}
	c, f, err := audio.Decode([]byte(data))
	if err != nil {
		return nil, err
	}
	table, err := describe(c, f)
	return append(values(c), table), err
}

func encode(args host.Args) ([]host.Value, error) {
	c, err := clip(args, 1)
	if err != nil {
		return nil, err
	}
	data, err := encoded(c, args, 4)
	return []host.Value{string(data)}, err
}

// silence(seconds, rate?, channels?) returns a silent clip.
func silence(args host.Args) ([]host.Value, error) {
	seconds, err := args.Float(1)
	if err != nil {
		return nil, err
	}
	rate, err := args.OptInt(2, 44100)
	if err != nil {
		return nil, err
	}
	channels, err := args.OptInt(3, 1)
	if err != nil {
		return nil, err
	}
	c, err := audio.Silence(seconds, small(rate), small(channels))
	if err != nil {
		return nil, err
	}
	return values(c), nil
}

// measure(clip…) returns a summary of samples: what info returns for files, and their
// levels.
func measure(args host.Args) ([]host.Value, error) {
	c, err := clip(args, 1)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(c.Info())
	return []host.Value{table, c.Peak(), c.RMS()}, err
}

// clip reads the sound in three arguments: its packed samples, its channels and its
// rate.
func clip(args host.Args, first int) (audio.Clip, error) {
	data, err := args.String(first)
	if err != nil {
		return audio.Clip{}, err
	}
	channels, err := args.Int(first + 1)
	if err != nil {
		return audio.Clip{}, err
	}
	rate, err := args.Int(first + 2)
	if err != nil {
		return audio.Clip{}, err
	}
	c := audio.Clip{Samples: unpack(data), Channels: small(channels), Rate: small(rate)}
	return c, c.Check()
}

// values returns a clip in the form that clip reads.
func values(c audio.Clip) []host.Value {
	packed := make([]byte, 0, 4*len(c.Samples))
	for _, s := range c.Samples {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(s))
	}
	return []host.Value{string(packed), int64(c.Channels), int64(c.Rate)}
}

func unpack(data string) []float32 {
	samples := make([]float32, len(data)/4)
	for i := range samples {
		b := data[4*i : 4*i+4]
		s := math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
		if s-s == 0 { // neither infinite nor NaN
			samples[i] = s
		}
	}
	return samples
}

// small limits a script's number to the range of an int.
func small(n int64) int { return int(max(-1, min(n, 1<<30))) }

// change(what, clip…, options) returns another clip.
func change(args host.Args) ([]host.Value, error) {
	what, err := args.String(1)
	if err != nil {
		return nil, err
	}
	c, err := clip(args, 2)
	if err != nil {
		return nil, err
	}
	var how struct {
		A, B  float64
		Named string
	}
	if err := args.Decode(5, &how); err != nil {
		return nil, err
	}
	switch what {
	case "resample":
		c, err = c.Resample(small(int64(how.A)), audio.Quality(how.Named))
	case "to_mono":
		c = c.Mono()
	case "to_stereo":
		c = c.Stereo()
	case "trim":
		c = c.Trim(how.A, how.B)
	case "pad":
		c, err = c.Pad(how.A, how.B)
	case "fade":
		c, err = c.Fade(how.A, how.B, audio.Curve(how.Named))
	case "gain":
		c = c.Gain(how.A)
	case "normalize":
		c = c.Normalize(how.A)
	case "reverse":
		c = c.Reverse()
	default:
		err = fault.New(fault.Internal, "audio cannot %s", what)
	}
	if err != nil {
		return nil, err
	}
	return values(c), nil
}

// join(what, packed samples of all, options) combines clips.
func join(args host.Args) ([]host.Value, error) {
	what, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := args.String(2)
	if err != nil {
		return nil, err
	}
	var how struct {
		Clips []struct{ Bytes, Channels, Rate int64 }
		Gains []float64
	}
	if err := args.Decode(3, &how); err != nil {
		return nil, err
	}
	var clips []audio.Clip
	for _, one := range how.Clips {
		if one.Bytes < 0 || one.Bytes > int64(len(data)) {
			return nil, fault.New(fault.Internal, "audio cannot %s %d bytes", what, one.Bytes)
		}
		c := audio.Clip{Samples: unpack(data[:one.Bytes]), Channels: small(one.Channels), Rate: small(one.Rate)}
		if err := c.Check(); err != nil {
			return nil, err
		}
		clips, data = append(clips, c), data[one.Bytes:]
	}
	var c audio.Clip
	if what == "mix" {
		c, err = audio.Mix(clips, how.Gains)
	} else {
		c, err = audio.Concat(clips)
	}
	if err != nil {
		return nil, err
	}
	return values(c), nil
}
