// Package synth renders Standard MIDI Files with SoundFonts to WAV files, faster than
// real time. It wraps a synthesizer library and protects it from malformed files.
package synth

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sinshu/go-meltysynth/meltysynth"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/soundfont"
)

// Limits of rendering.
const (
	MaxFont    = 512 << 20 // bytes of a SoundFont
	MaxSeconds = 3600.0    // seconds of sound
	Tail       = 3.0       // seconds for the last notes to fade out
)

// Options configure rendering.
type Options struct {
	Rate     int                // samples per second; 0 means 44100
	Progress func(part float64) // called with the progress from 0 to 1; may be nil
}

// Font is a loaded SoundFont. It is safe for concurrent use.
type Font struct {
	sounds *meltysynth.SoundFont
}

// Load reads a SoundFont of that size.
func Load(r io.ReaderAt, size int64) (f *Font, err error) {
	if size > MaxFont {
		return nil, fault.New(fault.Limit, "the SoundFont has %d bytes", size).WithHint("at most %d are supported", MaxFont)
	}
	about, err := soundfont.Read(r, size) // validates lengths, which the synthesizer's own reader trusts
	if err != nil {
		return nil, err
	}
	if len(about.Presets) == 0 {
		return nil, fault.New(fault.InvalidParams, "the SoundFont has no presets")
	}
	defer recovered(&err, "the synthesizer cannot read this SoundFont")
	sounds, err := meltysynth.NewSoundFont(whole{io.NewSectionReader(r, 0, size)})
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read SoundFont")
	}
	return &Font{sounds}, nil
}

// whole reads full buffers: the synthesizer's reader takes a short read for the end
// of the file.
type whole struct{ r io.Reader }

func (w whole) Read(p []byte) (int, error) { return io.ReadFull(w.r, p) }

// recovered turns a panic of the synthesizer into an error.
func recovered(err *error, what string) {
	if p := recover(); p != nil {
		*err = fault.Wrap(fault.InvalidParams, fmt.Errorf("%v", p), "%s", what).
			WithHint("the file is damaged or uses unsupported features; try another SoundFont")
	}
}

// Result describes the rendered file.
type Result struct {
	Frames  int
	Rate    int
	Peak    float64 // samples above 1 were clipped
	Seconds float64
}

// Play renders the music to a stereo WAV file of 16 bits.
func (f *Font) Play(ctx context.Context, w io.Writer, music *smf.File, o Options) (result Result, err error) {
	if o.Rate == 0 {
		o.Rate = 44100
	}
	if o.Rate < 8000 || o.Rate > 192_000 {
		return Result{}, fault.New(fault.InvalidParams, "invalid sample rate %d", o.Rate).WithHint("use 8000 to 192000; 44100 is usual")
	}
	notes, seconds := timed(music)
	if seconds > MaxSeconds-Tail {
		return Result{}, fault.New(fault.Limit, "the music lasts %.0f seconds", seconds).WithHint("at most %.0f are supported", MaxSeconds-Tail)
	}
	defer recovered(&err, "the synthesizer cannot play with this SoundFont")
	settings := meltysynth.NewSynthesizerSettings(int32(o.Rate)) //nolint:gosec // checked above
	machine, err := meltysynth.NewSynthesizer(f.sounds, settings)
	if err != nil {
		return Result{}, fault.Wrap(fault.InvalidParams, err, "start synthesizer")
	}
	total := int(math.Ceil((seconds + Tail) * float64(o.Rate)))
	p := &player{machine: machine, out: w, total: total, progress: o.Progress}
	if err := p.begin(o.Rate); err != nil {
		return Result{}, err
	}
	for _, n := range notes {
		if err := p.until(ctx, int(n.at*float64(o.Rate))); err != nil {
			return Result{}, err
		}
		machine.ProcessMidiMessage(int32(n.Channel), int32(n.Kind), int32(n.Data1), int32(n.Data2))
	}
	err = p.until(ctx, total)
	return Result{Frames: total, Rate: o.Rate, Peak: float64(p.peak), Seconds: float64(total) / float64(o.Rate)}, err
}

// note is an event for the synthesizer, at a time in seconds.
type note struct {
	smf.Event
	at float64
}

// timed returns the channel events of a file by time, and its length. The tracks of
// a format 2 file follow one another.
func timed(music *smf.File) (notes []note, seconds float64) {
	if music.Format != 2 {
		return together(music.Division, music.Tracks, 0)
	}
	for i := range music.Tracks {
		more, end := together(music.Division, music.Tracks[i:i+1], seconds)
		notes, seconds = append(notes, more...), end
	}
	return notes, seconds
}

// together returns the events of simultaneous tracks that start at a time.
func together(division smf.Division, tracks []smf.Track, start float64) (notes []note, end float64) {
	tempo := smf.TempoMapOf(division, tracks...)
	end = start
	for _, t := range tracks {
		end = math.Max(end, start+tempo.Seconds(t.End()))
		for _, e := range t.Events {
			if e.Kind.OnChannel() {
				notes = append(notes, note{e, start + tempo.Seconds(e.Time)})
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.at, b.at) })
	return notes, end
}

// player writes the output of the synthesizer.
type player struct {
	machine     *meltysynth.Synthesizer
	out         io.Writer
	done, total int
	peak        float32
	progress    func(float64)
	left, right [block]float32
	bytes       [block * 4]byte
}

// block is how many frames are rendered at once.
const block = 4096

func (p *player) begin(rate int) error {
	header, err := audio.Header(audio.Clip{Channels: 2, Rate: rate}, 16, p.total)
	if err != nil {
		return err
	}
	return p.write(header)
}

// until renders up to a frame.
func (p *player) until(ctx context.Context, frame int) error {
	for frame = min(frame, p.total); p.done < frame; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(block, frame-p.done)
		left, right := p.left[:n], p.right[:n]
		p.machine.Render(left, right)
		for i := range n {
			p.put(4*i, left[i])
			p.put(4*i+2, right[i])
		}
		if err := p.write(p.bytes[:4*n]); err != nil {
			return err
		}
		p.done += n
		if p.progress != nil {
			p.progress(float64(p.done) / float64(p.total))
		}
	}
	return nil
}

func (p *player) put(at int, s float32) {
	p.peak = max(p.peak, s, -s)
	v := int16(max(-1<<15, min(1<<15-1, math.Round(float64(s)*(1<<15)))))
	p.bytes[at], p.bytes[at+1] = byte(v), byte(v>>8) //nolint:gosec // the two bytes of it
}

func (p *player) write(b []byte) error {
	if _, err := p.out.Write(b); err != nil {
		return fault.Wrap(fault.Internal, err, "write sound")
	}
	return nil
}
