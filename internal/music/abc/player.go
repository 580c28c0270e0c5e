package abc

import "github.com/luanette/luanette/internal/music/smf"

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
