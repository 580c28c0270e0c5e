package abc

import (
	"github.com/luanette/luanette/internal/music/abc/accompany"
	"github.com/luanette/luanette/internal/music/smf"
)

// accompaniment is what plays beside a voice: chords and bass, drums and a drone.
type accompaniment struct {
	chord  *accompany.Chord
	chords sequence
	drums  sequence

	chordPart, bassPart harmonyPart
	hits                []hit // of the strokes of the drums
	drone               drone
}

// harmonyPart is the channel and the sound of chords or bass.
type harmonyPart struct {
	channel   uint8
	allocated bool
	velocity  int
	octave    int
}

type hit struct{ note, velocity int }

type drone struct {
	program    int
	notes      [2]int
	velocities [2]int
	since      int64
	on         bool
}

func newAccompaniment() accompaniment {
	return accompaniment{
		chordPart: harmonyPart{velocity: 75}, bassPart: harmonyPart{velocity: 80},
		drone: drone{program: 70, notes: [2]int{45, 33}, velocities: [2]int{80, 80}},
		drums: sequence{bars: 1}, chords: sequence{bars: 1, on: true},
	}
}

// sequence plays a pattern once in every bar, or in every few bars.
type sequence struct {
	pattern accompany.Pattern
	on      bool
	bars    int   // that one pass of the pattern takes
	bar     int   // of them, the current one
	start   int64 // when the pass began
	played  int64 // the time up to which strokes were played
}

func (q *sequence) set(p accompany.Pattern) { q.pattern = p }

// next begins a bar.
func (q *sequence) next(now int64) {
	if q.bar++; q.bar >= q.bars {
		q.bar, q.start = 0, now
	}
}

// strokes calls play for each stroke that begins before a time and was not played.
func (q *sequence) strokes(until, bar int64, play func(index int, s accompany.Stroke, start, end int64)) {
	from := q.played
	q.played = max(q.played, until)
	if q.pattern.Total == 0 {
		return
	}
	length := bar * int64(q.bars)
	at := func(n int) int64 { return q.start + length*int64(n)/int64(q.pattern.Total) }
	index := 0
	for _, s := range q.pattern.Strokes {
		if start := at(s.At); start >= from && start < until && s.Letter != 'z' {
			play(index, s, start, at(s.At+s.Length))
		}
		if s.Letter != 'z' {
			index++
		}
	}
}

// accompany plays what belongs to the time up to the end of the current step.
func (p *player) accompany(until int64) {
	if until <= p.now {
		return
	}
	p.chords.strokes(until, p.time.bar(), func(_ int, s accompany.Stroke, start, end int64) {
		if p.chord != nil && p.chords.on {
			p.stroke(s, start, end)
		}
	})
	p.drums.strokes(until, p.time.bar(), func(i int, _ accompany.Stroke, start, end int64) {
		if p.drums.on && len(p.hits) > 0 {
			h := p.hits[i%len(p.hits)]
			p.add(tone{start, end, clip(h.note), drums, h.velocity})
		}
	})
}

// stroke plays a stroke of the chords.
func (p *player) stroke(s accompany.Stroke, start, end int64) {
	if p.chord.Bass == 0 {
		return
	}
	notes, bass := s.Notes(*p.chord)
	if bass {
		p.harmony(&p.bassPart, p.chord.Bass, start, end)
	}
	for _, n := range notes {
		p.harmony(&p.chordPart, n, start, end)
	}
}

func (p *player) harmony(part *harmonyPart, note int, start, end int64) {
	p.allocate()
	p.add(tone{start, end, clip(note + p.opts.Transpose + 12*part.octave), part.channel, part.velocity})
}

// allocate takes a channel each for bass and chords when they are first needed.
func (p *player) allocate() {
	for _, part := range []*harmonyPart{&p.bassPart, &p.chordPart} {
		if !part.allocated {
			part.channel, part.allocated = p.spare(), true
		}
	}
}

// startDrone begins the two long notes of a bagpipe.
func (p *player) startDrone() {
	if !p.drone.on {
		p.drone.on, p.drone.since = true, p.now
	}
}

func (p *player) stopDrone() {
	if !p.drone.on || p.now <= p.drone.since {
		return
	}
	p.drone.on = false
	channel := p.spare()
	p.events = append(p.events, smf.Program(p.tick(p.drone.since), channel, uint8(p.drone.program)))
	for i, note := range p.drone.notes {
		p.add(tone{p.drone.since, p.now, clip(note), channel, p.drone.velocities[i]})
	}
}

// program selects the instrument of chords or bass.
func (p *player) program(tick int64, part *harmonyPart, s *setting) {
	p.allocate()
	part.octave = s.octave
	p.events = append(p.events, smf.Program(tick, part.channel, uint8(s.numbers[0])))
}

// setDrums reads the strokes, their notes and their velocities.
func (p *player) setDrums(s *setting) {
	p.drums.set(s.pattern)
	p.hits = nil
	for _, stroke := range s.pattern.Strokes {
		if stroke.Letter == 'd' {
			p.hits = append(p.hits, hit{note: 35, velocity: defaultVelocity})
		}
	}
	for i, n := range s.numbers {
		switch count := len(p.hits); {
		case i < count:
			p.hits[i].note = n
		case i < 2*count:
			p.hits[i-count].velocity = n
		}
	}
}

// set applies a directive while playing.
func (p *player) set(tick int64, s *setting) {
	if !p.setVoice(tick, s) && !p.setLoudness(s) {
		p.setAccompaniment(tick, s)
	}
}

// setVoice handles instrument, channel and articulation. Directives count channels
// from 1.
func (p *player) setVoice(tick int64, s *setting) bool {
	switch s.name {
	case "channel":
		p.channel = p.channelOf(s.numbers[0])
	case "program":
		channel := p.channel
		if len(s.numbers) == 2 {
			channel = p.channelOf(s.numbers[0])
		}
		p.events = append(p.events, smf.Program(tick, channel, uint8(s.numbers[len(s.numbers)-1])))
	case "control":
		channel := p.channel
		if len(s.words) > 0 {
			p.allocate()
			channel = p.part(s.words[0]).channel
		}
		p.events = append(p.events, smf.Control(tick, channel, uint8(s.numbers[0]), uint8(s.numbers[1])))
	case "chordattack":
		p.spread = int64(s.numbers[0]) * whole / 1920
	case "trim":
		p.gap = Fraction{s.numbers[0], max(s.numbers[1], 1)}
	default:
		return false
	}
	return true
}

// channelOf returns the channel with that number, or the current channel if there
// is none or the options fix the channel.
func (p *player) channelOf(number int) uint8 {
	if number < 1 || number > 16 || p.opts.Channel != 0 {
		return p.channel
	}
	return uint8(number - 1)
}

// part is the chords or the bass.
func (p *player) part(name string) *harmonyPart {
	if name == "bass" {
		return &p.bassPart
	}
	return &p.chordPart
}

func (p *player) setLoudness(s *setting) bool {
	switch s.name {
	case "beat":
		p.first, p.strong, p.weak = s.numbers[0], s.numbers[1], s.numbers[2]
		if len(s.numbers) > 3 {
			p.every = s.numbers[3]
		}
	case "beatmod":
		p.loudness.add(s.numbers[0])
	case "beatstring":
		p.loudness.pattern = s.words[0]
	case "beataccents":
		p.even = false
	case "nobeataccents":
		p.even = true
	case "deltaloudness":
		p.delta = s.numbers[0]
	default:
		return false
	}
	return true
}

func (p *player) setAccompaniment(tick int64, s *setting) {
	switch s.name {
	case "gchord":
		p.setPattern(s)
	case "gchordon", "gchordoff":
		p.chords.on = s.name == "gchordon"
	case "gchordbars":
		p.chords.bars = s.numbers[0]
	case "drumon", "drumoff":
		p.accompaniment.drums.on = s.name == "drumon"
	case "drumbars":
		p.accompaniment.drums.bars = s.numbers[0]
	case "chordprog":
		p.program(tick, &p.chordPart, s)
	case "bassprog":
		p.program(tick, &p.bassPart, s)
	case "chordvol":
		p.chordPart.velocity = s.numbers[0]
	case "bassvol":
		p.bassPart.velocity = s.numbers[0]
	case "drum":
		p.setDrums(s)
	case "drone":
		n := s.numbers
		p.drone.program, p.drone.notes, p.drone.velocities = n[0], [2]int{n[1], n[2]}, [2]int{n[3], n[4]}
	case "droneon":
		p.startDrone()
	case "droneoff":
		p.stopDrone()
	}
}

// setPattern sets the pattern of chords; without one, that of the meter.
func (p *player) setPattern(s *setting) {
	if s.pattern.Total > 0 {
		p.chords.set(s.pattern)
	} else if pattern, ok := p.time.pattern(); ok {
		p.chords.set(pattern)
	}
}
