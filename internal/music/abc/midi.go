package abc

import (
	"cmp"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/smf"
)

// maxSteps limits the steps that all voices of a tune play, maxNotes the notes,
// and maxTicks the time: two events of a file cannot be further apart.
const (
	maxSteps = 1 << 19
	maxNotes = 1 << 19
	maxTicks = 1<<28 - 1
)

// drums is the channel of percussion.
const drums = 9

// Options configure the conversion of a tune.
type Options struct {
	Velocity     int     // of weak beats, 1–127; 0: 80, which gives 105 for the first and 95 for strong beats
	Channel      int     // 1–15: every voice plays there, 9 is drums; 0: each voice on its own, from 0 on
	TicksPerBeat int     // 1–32767; 0: 480
	Tempo        float64 // quarter notes per minute all through; 0: as the tune says, else 120
	Transpose    int     // semitones; drums stay
}

// ToMIDI converts a tune to a format 0 file: repeats and parts written out, all
// voices together, with title, tempo, meter, key and the lyrics of the first voice
// that has any, and an accompaniment to the chord symbols. Where ABC leaves the sound
// open it is that of abc2midi.
func ToMIDI(tune *Tune, opts Options) (*smf.File, error) {
	opts.Velocity = cmp.Or(opts.Velocity, defaultVelocity)
	opts.TicksPerBeat = cmp.Or(opts.TicksPerBeat, smf.DefaultTicksPerBeat)
	if err := opts.check(); err != nil {
		return nil, err
	}
	b := &band{tune: tune, opts: opts, left: maxSteps}
	b.announce()
	for i, voice := range tune.Voices {
		if err := b.play(i, voice); err != nil {
			return nil, err
		}
	}
	file := b.file()
	if file.Tracks[0].End() > maxTicks {
		return nil, tooLong()
	}
	return file, nil
}

func (o Options) check() error {
	switch {
	case o.Velocity < 1 || o.Velocity > 127:
		return fault.New(fault.InvalidParams, "play abc: velocity %d is not 1 to 127", o.Velocity)
	case o.Channel < 0 || o.Channel > 15:
		return fault.New(fault.InvalidParams, "play abc: channel %d is not 0 to 15", o.Channel)
	case o.TicksPerBeat < 1 || o.TicksPerBeat > 0x7fff:
		return fault.New(fault.InvalidParams, "play abc: %d ticks per beat is not 1 to 32767", o.TicksPerBeat)
	case !(o.Tempo == 0 || o.Tempo >= 1 && o.Tempo <= maxPart):
		return fault.New(fault.InvalidParams, "play abc: tempo %v is not 1 to %d", o.Tempo, maxPart)
	}
	return nil
}

// band plays the voices of a tune one after the other into one list of events.
type band struct {
	tune   *Tune
	opts   Options
	events []smf.Event
	spares int // channels that voices use beside their own
	left   int // steps that may still be played
	notes  int
	sung   bool  // a voice with words was played
	end    int64 // in units
}

// announce writes title, tempo, meter and key.
func (b *band) announce() {
	if len(b.tune.Titles) > 0 {
		b.events = append(b.events, smf.TextEvent(0, smf.TrackName, b.tune.Titles[0]))
	}
	if b.opts.Tempo != 0 {
		b.tempo(0, b.opts.Tempo)
	} else if b.tune.Tempo != nil {
		b.tempo(0, b.tune.Tempo.quarters())
	} else {
		b.tempo(0, defaultTempo.quarters())
	}
	b.meter(0, b.tune.Meter)
	b.key(0, b.tune.Key)
}

func (b *band) tempo(tick int64, quarters float64) {
	b.events = append(b.events, smf.SetTempo(tick, int(math.Round(60e6/quarters))))
}

func (b *band) meter(tick int64, m Meter) {
	if m.free() {
		m.Beat, m.Den = 4, 4
	}
	b.events = append(b.events, smf.SetMeter(tick, uint8(m.Beat), m.Den))
}

func (b *band) key(tick int64, k Key) {
	if k.Sharps >= -7 && k.Sharps <= 7 {
		b.events = append(b.events, smf.SetKey(tick, int8(k.Sharps), k.Mode == "minor"))
	}
}

// tick converts a time in units to ticks.
func (b *band) tick(units int64) int64 {
	perWhole := int64(4 * b.opts.TicksPerBeat)
	return units/whole*perWhole + (units%whole*perWhole+whole/2)/whole
}

// play plays one voice. Tempo changes count from any voice, changes of meter
// and key from the first.
func (b *band) play(index int, voice *Voice) error {
	p := b.player(index, voice)
	order := perform(b.tune, voice.steps, b.left+1)
	if b.left -= len(order); b.left < 0 {
		return tooLong()
	}
	verses := make([]int, len(voice.steps))
	for _, i := range order {
		s := &voice.steps[i]
		p.step(s, index == 0)
		p.sing(s, verses[i])
		verses[i]++
		if p.now > maxUnits || b.notes > maxNotes {
			return tooLong()
		}
	}
	p.stopDrone()
	for _, t := range p.tones {
		b.sound(t)
	}
	b.end = max(b.end, p.now)
	b.sung = b.sung || p.singing
	return nil
}

func tooLong() error {
	return fault.New(fault.Limit, "play abc: the tune is too long when its repeats are written out").
		WithHint("repeat fewer parts, or split the tune")
}

// channel is the channel of a voice without %%MIDI channel.
func (b *band) channel(index int, voice *Voice) uint8 {
	switch {
	case b.opts.Channel != 0:
		return uint8(b.opts.Channel)
	case voice.Percussion:
		return drums
	}
	return channelAt(index)
}

// channelAt counts the channels that are not drums.
func channelAt(index int) uint8 {
	channel := index % 15
	if channel >= drums {
		channel++
	}
	return uint8(channel)
}

// sound writes a tone's two events. It lasts at least one tick.
func (b *band) sound(t *tone) {
	start, end := b.tick(t.start), b.tick(t.end)
	b.events = append(b.events,
		smf.Note(start, t.channel, t.note, uint8(min(max(t.velocity, 1), maxVelocity))),
		smf.Release(max(end, start+1), t.channel, t.note))
}

// spare is the next channel that no voice has.
func (b *band) spare() uint8 {
	if b.opts.Channel != 0 {
		return uint8(b.opts.Channel)
	}
	b.spares++
	return channelAt(len(b.tune.Voices) + b.spares - 1)
}

// file puts the events in order: at one tick, notes end before others begin.
func (b *band) file() *smf.File {
	rank := func(e smf.Event) int {
		switch {
		case e.Stops():
			return 1
		case e.Starts():
			return 2
		}
		return 0
	}
	slices.SortStableFunc(b.events, func(x, y smf.Event) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(rank(x), rank(y)))
	})
	end := b.tick(b.end)
	if n := len(b.events); n > 0 {
		end = max(end, b.events[n-1].Time)
	}
	b.events = append(b.events, smf.End(end))
	smf.Deltas(b.events)
	return &smf.File{
		Division: smf.Division{TicksPerBeat: uint16(b.opts.TicksPerBeat)},
		Tracks:   []smf.Track{{Events: b.events}},
	}
}
