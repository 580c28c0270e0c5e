// Package synth renders Standard MIDI Files with SoundFonts to WAV files, many times
// faster than real time: all generators and modulators of the format, samples of 16
// and 24 bits, reverb and chorus. The sound is made block by block and never held in
// memory as a whole. It is measured against FluidSynth: see docs/rendering.md.
package synth

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
)

// Limits of rendering.
const (
	MaxSeconds = 3600.0 // seconds of sound
	MaxTail    = 20.0   // seconds for the last notes to fade out; what sounds longer is faded out
	MaxGain    = 60.0   // decibels up and down
	NormalPeak = -1.0   // decibels of the loudest sample of a normalized file
	fadeOut    = 0.5    // seconds of fading out at the end of the longest tail
	checkEvery = 64     // blocks between two looks at the context
)

// Options configure rendering.
type Options struct {
	Rate      int                // samples per second; 0 means 44100
	Gain      float64            // decibels
	Normalize bool               // brings the loudest sample to NormalPeak before Gain; the music is rendered twice
	Progress  func(part float64) // called with the progress from 0 to 1; may be nil
}

func (o *Options) check() error {
	if o.Rate == 0 {
		o.Rate = 44100
	}
	if o.Rate < 8000 || o.Rate > 192_000 {
		return fault.New(fault.InvalidParams, "invalid sample rate %d", o.Rate).WithHint("use 8000 to 192000; 44100 is usual")
	}
	if !(math.Abs(o.Gain) <= MaxGain) {
		return fault.New(fault.InvalidParams, "invalid gain of %g dB", o.Gain).WithHint("use %g to %g", -MaxGain, MaxGain)
	}
	return nil
}

// Result describes the rendered file.
type Result struct {
	Frames  int
	Rate    int
	Gain    float64 // decibels, with those of Normalize
	Peak    float64 // samples above 1 were clipped
	Seconds float64
}

// Play renders the music to a stereo WAV file of 16 bits. It ends when the last note
// has faded out.
func (f *Font) Play(ctx context.Context, w io.Writer, music *smf.File, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	p, err := f.prepare(music, o.Rate)
	if err != nil {
		return Result{}, err
	}
	// The header has the length, so a first pass finds the end of the last note. It
	// needs no sound, and little time, unless the peak is wanted too.
	first := 0.04
	if o.Normalize {
		first = 0.5
	}
	measured, err := p.run(ctx, pass{silent: !o.Normalize, progress: o.part(0, first)})
	if err != nil {
		return Result{}, err
	}
	gain := o.Gain
	if o.Normalize && measured.peak > 0 {
		gain += NormalPeak - 20*math.Log10(measured.peak)
	}
	out := &writer{w: w, gain: float32(audio.FromDecibels(gain))}
	if err := out.begin(o.Rate, measured.frames); err != nil {
		return Result{}, err
	}
	if _, err := p.run(ctx, pass{out: out, frames: measured.frames, progress: o.part(first, 1)}); err != nil {
		return Result{}, err
	}
	return Result{Frames: measured.frames, Rate: o.Rate, Gain: gain, Peak: float64(out.peak), Seconds: float64(measured.frames) / float64(o.Rate)}, nil
}

// part is the progress of a pass, as a part of the whole.
func (o *Options) part(from, to float64) func(float64) {
	return func(part float64) {
		if o.Progress != nil {
			o.Progress(from + part*(to-from))
		}
	}
}

// piece is music that is ready to be rendered.
type piece struct {
	font   *Font
	rate   int
	events []event
	end    float64 // seconds
}

func (f *Font) prepare(music *smf.File, rate int) (*piece, error) {
	events, end := timed(music)
	if !(end <= MaxSeconds-MaxTail) {
		return nil, fault.New(fault.Limit, "the music lasts %.0f seconds, longer than the %.0f that can be rendered", end, MaxSeconds-MaxTail).
			WithHint("cut the MIDI file into shorter ones")
	}
	return &piece{font: f, rate: rate, events: events, end: end}, nil
}

// pass is one way through the music.
type pass struct {
	silent   bool    // computes only how long it takes
	out      *writer // nil: only measures
	frames   int     // where to stop; 0: when everything has faded out
	progress func(part float64)
}

// measures is what a pass finds.
type measures struct {
	frames int
	peak   float64
}

// run renders the music once.
func (p *piece) run(ctx context.Context, way pass) (measures, error) {
	r := &rendering{pass: way, machine: newMachine(p.font, p.rate, way.silent), rest: p.events}
	r.end = int(math.Ceil(p.end * float64(p.rate)))
	r.limit = r.end + int(MaxTail*float64(p.rate))
	for count := 0; !r.over(); count++ {
		if count%checkEvery == 0 {
			if ctx.Err() != nil {
				return measures{}, context.Cause(ctx)
			}
			r.report()
		}
		if err := r.step(ctx); err != nil {
			return measures{}, err
		}
	}
	r.done = max(r.done, r.end)
	r.report()
	return measures{frames: r.done, peak: float64(r.peak)}, nil
}

// rendering is the state of a pass.
type rendering struct {
	pass
	machine  *machine
	rest     []event
	done     int // frames
	end      int // of the music, in frames
	limit    int // of the longest tail
	peak     float32
	finished bool // all keys and pedals are up
	wet      int  // last frame with something for the reverb
}

// over reports whether the pass is at its end.
func (r *rendering) over() bool {
	if r.frames > 0 {
		return r.done >= r.frames
	}
	if r.done >= r.limit {
		r.done = r.limit
		return true
	}
	return r.finished && len(r.machine.voices) == 0 && (r.wet == 0 || r.done >= r.wet+int(reverbTail*r.machine.rate))
}

// step handles the events that are due and renders a block.
func (r *rendering) step(ctx context.Context) error {
	m := r.machine
	for n := 0; len(r.rest) > 0 && r.rest[0].at*m.rate <= float64(r.done); n++ {
		if n%1024 == 1023 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := m.play(r.rest[0].Event); err != nil {
			return err
		}
		r.rest = r.rest[1:]
	}
	if !r.finished && r.done >= r.end {
		m.finish()
		r.finished = true
	}
	m.block()
	if m.wet {
		r.wet = r.done + m.frames
	}
	frames := m.frames
	if r.frames > 0 {
		frames = min(frames, r.frames-r.done)
	}
	r.fade(frames)
	r.done += frames
	return r.deliver(frames)
}

// fade takes down what still sounds at the end of the longest tail.
func (r *rendering) fade(frames int) {
	length := fadeOut * r.machine.rate
	if float64(r.limit-r.done-frames) > length || r.silent {
		return
	}
	out := &r.machine.out
	for i := range frames {
		gain := float32(min(1, max(0, float64(r.limit-r.done-i)/length)))
		out.left[i] *= gain
		out.right[i] *= gain
	}
}

// deliver writes or measures the block.
func (r *rendering) deliver(frames int) error {
	if r.silent {
		return nil
	}
	left, right := r.machine.out.left[:frames], r.machine.out.right[:frames]
	if r.out != nil {
		return r.out.write(left, right)
	}
	for i := range left {
		r.peak = max(r.peak, left[i], -left[i], right[i], -right[i])
	}
	return nil
}

func (r *rendering) report() {
	total := r.frames
	if total == 0 {
		total = r.end + int(r.machine.rate)
	}
	if r.progress != nil {
		r.progress(min(1, float64(r.done)/float64(max(1, total))))
	}
}

// event is an event for the synthesizer, at a time in seconds.
type event struct {
	smf.Event
	at float64
}

// timed returns the events of a file by time, and its length. The tracks of a format 2
// file follow one another.
func timed(music *smf.File) (events []event, seconds float64) {
	if music.Format != 2 {
		return together(music.Division, music.Tracks, 0)
	}
	for i := range music.Tracks {
		more, end := together(music.Division, music.Tracks[i:i+1], seconds)
		events, seconds = append(events, more...), end
	}
	return events, seconds
}

// together returns the events of simultaneous tracks that start at a time.
func together(division smf.Division, tracks []smf.Track, start float64) (events []event, end float64) {
	tempo := smf.TempoMapOf(division, tracks...)
	end = start
	for _, t := range tracks {
		end = math.Max(end, start+tempo.Seconds(t.End()))
		for _, e := range t.Events {
			if e.Kind.OnChannel() || e.Kind == smf.SysEx {
				events = append(events, event{e, start + tempo.Seconds(e.Time)})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return events, end
}

// writer writes a stereo WAV file of 16 bits.
type writer struct {
	w     io.Writer
	gain  float32
	peak  float32
	bytes []byte
}

// begin writes the header of a file with that many frames.
func (w *writer) begin(rate, frames int) error {
	header, err := audio.Header(audio.Clip{Channels: 2, Rate: rate}, 16, frames)
	if err != nil {
		return err
	}
	return w.put(header)
}

// write writes a block.
func (w *writer) write(left, right []float32) error {
	w.bytes = w.bytes[:0]
	for i := range left {
		w.sample(left[i] * w.gain)
		w.sample(right[i] * w.gain)
	}
	return w.put(w.bytes)
}

func (w *writer) sample(s float32) {
	w.peak = max(w.peak, s, -s)
	v := int16(max(-1<<15, min(1<<15-1, math.RoundToEven(float64(s)*(1<<15)))))
	w.bytes = append(w.bytes, byte(v), byte(v>>8))
}

func (w *writer) put(b []byte) error {
	if _, err := w.w.Write(b); err != nil {
		return fault.Wrap(fault.Internal, err, "write sound")
	}
	return nil
}
