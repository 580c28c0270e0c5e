package abc

import "github.com/luanette/luanette/internal/music/smf"

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
