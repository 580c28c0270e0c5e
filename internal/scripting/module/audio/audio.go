// Package audio is the audio module of scripts: it reads, changes and writes sound as
// samples. Samples are passed between script and host as packed bytes, four each; the
// prelude makes them look like a list.
package audio

import (
	"context"
	"embed"
	"encoding/binary"
	"io"
	"math"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed audio.md prelude.lua prelude.js
var files embed.FS

// Module is the global audio.
func Module() host.Module {
	return host.Module{Name: "audio", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "read_wav", Kind: host.Read, Effect: host.Bind(readWAV)},
		{Name: "write_wav", Kind: host.Idempotent, Path: 1, Effect: host.Bind(writeWAV), Action: host.Does("write", 1)},
		{Name: "info", Kind: host.Read, Effect: host.Bind(info)},
		{Name: "silence", Pure: host.BindPure(silence)},
		{Name: "__decode", Hidden: true, Pure: host.BindPure(decode)},
		{Name: "__encode", Hidden: true, Pure: host.BindPure(encode)},
		{Name: "__measure", Hidden: true, Pure: host.BindPure(measure)},
		{Name: "__change", Hidden: true, Pure: host.BindPure(change)},
		{Name: "__join", Hidden: true, Pure: host.BindPure(join)},
	}}
}

// summary is what scripts learn of a file and its format.
type summary struct {
	audio.Info
	Bits  int  `json:"bits"`
	Float bool `json:"float"`
}

// file reads the WAV file that a path or hash names.
func file(ctx context.Context, w *host.Services, name string) (audio.Clip, summary, error) {
	f, err := w.Open(ctx, name)
	if err != nil {
		return audio.Clip{}, summary{}, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, audio.MaxSize+1))
	if err != nil {
		return audio.Clip{}, summary{}, fault.Wrap(fault.InvalidParams, err, "read %s", name)
	}
	return parse(data)
}

func parse(data []byte) (audio.Clip, summary, error) {
	c, f, err := audio.Decode(data)
	if err != nil {
		return c, summary{}, err
	}
	return c, summary{c.Info(), f.Bits, f.Float}, nil
}

func readWAV(ctx context.Context, w *host.Services, name string) (packed string, channels, rate int, s summary, err error) {
	c, s, err := file(ctx, w, name)
	packed, channels, rate = values(c)
	return packed, channels, rate, s, err
}

func info(ctx context.Context, w *host.Services, name string) (summary, error) {
	_, s, err := file(ctx, w, name)
	return s, err
}

// writeWAV(path, clip…, bits) writes a file.
func writeWAV(w *host.Services, args host.Args, path, packed string, channels int64) (string, error) {
	rate, err := args.Int(4)
	if err != nil {
		return "", err
	}
	bits, err := args.OptInt(5, 16)
	if err != nil {
		return "", err
	}
	data, err := encode(packed, channels, rate, &bits)
	if err != nil {
		return "", err
	}
	return path, w.Files.Write(path, data, false)
}

func decode(data string) (packed string, channels, rate int, s summary, err error) {
	c, s, err := parse([]byte(data))
	packed, channels, rate = values(c)
	return packed, channels, rate, s, err
}

func encode(packed string, channels, rate int64, bits *int64) ([]byte, error) {
	c, err := clip(packed, channels, rate)
	if err != nil {
		return nil, err
	}
	return c.Encode(int(host.Or(bits, 16)))
}

// silence(seconds, rate?, channels?) returns a silent clip.
func silence(seconds float64, rate, channels *int64) (string, int, int, error) {
	return packed(audio.Silence(seconds, small(host.Or(rate, 44100)), small(host.Or(channels, 1))))
}

// measure(clip…) returns a summary of samples: what info returns for files, and their
// levels.
func measure(packed string, channels, rate int64) (audio.Info, float64, float64, error) {
	c, err := clip(packed, channels, rate)
	if err != nil {
		return audio.Info{}, 0, 0, err
	}
	return c.Info(), c.Peak(), c.RMS(), nil
}

// clip is the sound in three arguments: its packed samples, its channels and its rate.
func clip(packed string, channels, rate int64) (audio.Clip, error) {
	c := audio.Clip{Samples: unpack(packed), Channels: small(channels), Rate: small(rate)}
	return c, c.Check()
}

// packed is values for a clip whose making may have failed.
func packed(c audio.Clip, err error) (string, int, int, error) {
	if err != nil {
		return "", 0, 0, err
	}
	samples, channels, rate := values(c)
	return samples, channels, rate, nil
}

// values returns a clip in the form that clip reads.
func values(c audio.Clip) (packed string, channels, rate int) {
	bytes := make([]byte, 0, 4*len(c.Samples))
	for _, s := range c.Samples {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(s))
	}
	return string(bytes), c.Channels, c.Rate
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

// how is how a clip is changed.
type how struct {
	A, B  float64
	Named string
}

// change(what, clip…, options) returns another clip.
func change(what, samples string, channels, rate int64, how how) (string, int, int, error) {
	c, err := clip(samples, channels, rate)
	if err != nil {
		return "", 0, 0, err
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
	return packed(c, err)
}

// together is how clips are combined.
type together struct {
	Clips []struct{ Bytes, Channels, Rate int64 }
	Gains []float64
}

// join(what, packed samples of all, options) combines clips.
func join(what, data string, how together) (string, int, int, error) {
	var clips []audio.Clip
	for _, one := range how.Clips {
		if one.Bytes < 0 || one.Bytes > int64(len(data)) {
			return "", 0, 0, fault.New(fault.Internal, "audio cannot %s %d bytes", what, one.Bytes)
		}
		c := audio.Clip{Samples: unpack(data[:one.Bytes]), Channels: small(one.Channels), Rate: small(one.Rate)}
		if err := c.Check(); err != nil {
			return "", 0, 0, err
		}
		clips, data = append(clips, c), data[one.Bytes:]
	}
	if what == "mix" {
		return packed(audio.Mix(clips, how.Gains))
	}
	return packed(audio.Concat(clips))
}
