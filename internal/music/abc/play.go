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

// player plays the steps of one voice.
type player struct {
	*band
	loudness
	accompaniment
	channel uint8
	time    Meter
	now     int64 // in units
	bar     int64 // when this bar began
	pickup  bool  // this is the first bar
	longest int64 // the end of the longest overlay in it
	tones   []*tone
	ties    map[int]*tone // tones that wait for their tied note, by pitch
	singing bool
	bend    int   // of the channel
	spread  int64 // between the notes of a chord
	gap     Fraction
}

// tone is a note as it sounds: tied notes are one.
type tone struct {
	start, end    int64 // in units
	note, channel uint8
	velocity      int
}

func (b *band) player(index int, voice *Voice) *player {
	p := &player{band: b, loudness: newLoudness(b.opts.Velocity), channel: b.channel(index, voice), pickup: true, ties: map[int]*tone{}}
	p.accompaniment = newAccompaniment()
	p.setMeter(b.tune.Meter)
	return p
}

func (p *player) setMeter(m Meter) {
	p.time = m
	p.loudness.beats(m)
	if pattern, ok := m.pattern(); ok {
		p.chords.set(pattern)
	}
}

func (p *player) step(s *step, first bool) {
	tick := p.tick(p.now)
	switch {
	case s.bar != nil:
		p.endBar(s.bar)
	case s.overlay:
		p.longest = max(p.longest, p.now)
		p.now = p.bar
	case s.tempo != nil && p.opts.Tempo == 0:
		p.tempo(tick, s.tempo.quarters())
	case s.meter != nil:
		p.setMeter(*s.meter)
		if first {
			p.meter(tick, *s.meter)
		}
	case s.key != nil && first:
		p.key(tick, *s.key)
	case s.setting != nil:
		p.set(tick, s.setting)
	case s.dynamic != "":
		p.loudness.mark(s.dynamic)
	case s.chord != nil:
		p.chord = s.chord
	}
	p.sounds(s)
	p.accompany(p.now + s.length + s.hold)
	p.now += s.length + s.hold
}

// endBar begins a new bar. A bar that a repeat or a double bar line divides goes on
// after it, as in a tune with a pickup; the first bar of a tune is a pickup itself.
func (p *player) endBar(b *Bar) {
	p.now = max(p.now, p.longest)
	if !b.line || p.now == p.bar {
		return
	}
	plain := b.Ends == 0 && b.Begins == 0 && !b.Double
	if plain || p.pickup || p.time.free() || p.now-p.bar >= p.time.bar() {
		p.bar, p.pickup = p.now, false
		p.chords.next(p.now)
		p.drums.next(p.now)
	}
}

// sounds plays the notes of a step after its grace notes, which take their time from it.
// Grace notes that leave nothing of it are not played.
func (p *player) sounds(s *step) {
	length := s.length + s.hold
	start := p.now
	var grace int64
	for _, g := range s.graces {
		grace += g.length
	}
	for _, g := range s.graces {
		if grace >= length {
			break
		}
		p.tone(g.midi, start, g.length)
		start += g.length
	}
	p.wheel(s)
	for i, n := range s.sounds {
		p.sound(s, n, start, int64(i))
	}
}

// sound plays a note of a step, or prolongs the one tied to it.
func (p *player) sound(s *step, n sound, start, index int64) {
	end := max(p.now+n.length+s.hold, start+1)
	if s.short {
		end = start + max((end-start)/2, 1)
	}
	t, tied := p.ties[n.midi]
	if tied && t.end == p.now {
		t.end = end
	} else {
		t = p.figure(s, n.midi, start, end)
	}
	p.detach(s, t, n)
	p.arpeggiate(s, t, index)
	delete(p.ties, n.midi)
	if n.tie {
		p.ties[n.midi] = t
	}
}

// figure plays a note with its ornament and returns the last tone of it.
func (p *player) figure(s *step, midi int, start, end int64) (last *tone) {
	velocity := p.velocity(start)
	for _, part := range s.parts(midi, end-start) {
		last = p.tone(part.midi, start, part.length)
		start += part.length
	}
	if s.figure == noFigure && len(s.sounds) > 1 {
		last.velocity = velocity
	}
	if s.accented {
		last.velocity = min(last.velocity+accent, maxVelocity)
	}
	return last
}

// detach leaves a gap before the next note, as %%MIDI trim asks.
func (p *player) detach(s *step, t *tone, n sound) {
	if p.gap.Num == 0 || s.slurred || n.tie {
		return
	}
	gap := scale(s.unit, p.gap.Num, p.gap.Den)
	if gap >= t.end-t.start {
		gap = (t.end - t.start) / 2
	}
	t.end -= gap
}

// arpeggiate starts the higher notes of a chord later.
func (p *player) arpeggiate(s *step, t *tone, index int64) {
	spread := p.spread
	if s.arpeggio {
		spread = max(3*spread, arpeggioSpread)
	}
	if late := t.start + index*spread; late < t.end {
		t.start = late
	}
}

// arpeggioSpread is the least time between the notes of an arpeggio.
const arpeggioSpread = 30 * whole / 1920

// wheel bends the channel for the microtone of a step, or back.
func (p *player) wheel(s *step) {
	if len(s.sounds) == 0 {
		return
	}
	bend := 0
	for _, n := range s.sounds {
		if bend = n.bend; bend != 0 {
			break
		}
	}
	if bend != p.bend {
		p.bend = bend
		p.events = append(p.events, smf.Bend(p.tick(p.now), p.channel, bend))
	}
}

// velocity is how hard a note at a time is struck.
func (p *player) velocity(time int64) int { return p.at(time-p.bar, p.time) }

func (p *player) tone(midi int, start, length int64) *tone {
	if p.channel != drums {
		midi += p.opts.Transpose
	}
	return p.add(tone{start, start + length, clip(midi), p.channel, p.velocity(start)})
}

func clip(midi int) uint8 { return uint8(min(max(midi, 0), 127)) }

func (p *player) add(t tone) *tone {
	p.tones = append(p.tones, &t)
	p.notes++
	return &t
}

// sing writes the syllable of a verse, or of the last verse, at the start of the
// step that was just played. Only one voice is written with words.
func (p *player) sing(s *step, verse int) {
	if len(s.words) == 0 || p.sung {
		return
	}
	p.singing = true
	if text := s.words[min(verse, len(s.words)-1)]; text != "" {
		p.events = append(p.events, smf.TextEvent(p.tick(p.now-s.length-s.hold), smf.Lyric, text))
	}
}

// loudness decides how hard a note is struck: the first of a bar has velocity first,
// those on a strong beat strong, others weak.
type loudness struct {
	first, strong, weak int
	every               int    // strong beats are this many beats apart
	even                bool   // every note has the velocity strong
	pattern             string // f, m and p for each beat, in place of every
	delta               int    // what a crescendo adds
	shift               int    // what the options add to all
}

// maxVelocity is the largest velocity.
const maxVelocity = 127

// defaultVelocity is the velocity of a weak beat without dynamics.
const defaultVelocity = 80

func newLoudness(velocity int) loudness {
	return loudness{first: 105, strong: 95, weak: defaultVelocity, delta: 15, shift: velocity - defaultVelocity}
}

// beats sets the strong beats of a meter: every third or every second one.
func (l *loudness) beats(m Meter) {
	if m.free() {
		m.Beat = 4
	}
	switch {
	case m.Beat%3 == 0:
		l.every = 3
	case m.Beat%2 == 0:
		l.every = 2
	default:
		l.every = m.Beat
	}
}

// at is the velocity of a note that begins a time after its bar line.
func (l *loudness) at(time int64, m Meter) int {
	if m.free() {
		m.Den = 4
	}
	beat := time * int64(m.Den)
	v := l.weak
	switch n := int(beat / whole); {
	case l.even:
		v = l.strong
	case l.pattern != "" && beat%whole == 0:
		v = l.patterned(n % len(l.pattern))
	case time == 0:
		v = l.first
	case beat%whole == 0 && n%max(l.every, 1) == 0:
		v = l.strong
	}
	return min(max(v+l.shift, 1), maxVelocity)
}

func (l *loudness) patterned(beat int) int {
	switch l.pattern[beat] {
	case 'f':
		return l.first
	case 'm':
		return l.strong
	}
	return l.weak
}

// add makes all beats louder or softer from here on.
func (l *loudness) add(n int) {
	for _, v := range []*int{&l.first, &l.strong, &l.weak} {
		*v = min(max(*v+n, 1), maxVelocity)
	}
}

// dynamics are the marks of loudness, by the velocities of the first, the strong and
// the weak beats.
var dynamics = map[string][3]int{
	"pppp": {20, 10, 5}, "ppp": {30, 20, 10}, "pp": {45, 35, 20}, "p": {60, 50, 35}, "mp": {75, 65, 50},
	"mf": {90, 80, 65}, "f": {105, 95, 80}, "ff": {120, 110, 95}, "fff": {127, 125, 110}, "ffff": {127, 127, 125},
}

// swells are the ends of crescendo and diminuendo, by their direction. Both ends
// change the loudness.
var swells = map[string]int{
	"crescendo(": 1, "crescendo)": 1, "<(": 1, "<)": 1,
	"diminuendo(": -1, "diminuendo)": -1, ">(": -1, ">)": -1,
}

// mark applies a dynamic mark or the end of a swell.
func (l *loudness) mark(name string) {
	if v, ok := dynamics[name]; ok {
		l.first, l.strong, l.weak, l.every = v[0], v[1], v[2], 1
		return
	}
	l.add(swells[name] * l.delta)
}
