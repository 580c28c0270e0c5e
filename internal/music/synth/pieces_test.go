package synth_test

import "github.com/luanette/luanette/internal/music/smf"

// tune is a piece of music as it is written: times in ticks, 480 per beat of half a
// second.
type tune struct{ events []smf.Event }

const beat = 480

func (p *tune) add(e ...smf.Event) { p.events = append(p.events, e...) }

// note plays a key for some ticks.
func (p *tune) note(at, length int64, channel, key, velocity uint8) {
	p.add(smf.Note(at, channel, key, velocity), smf.Release(at+length, channel, key))
}

// sweep moves a controller from one value to another.
func (p *tune) sweep(at, length int64, channel, control uint8, from, to int) {
	const steps = 32
	for i := range steps + 1 {
		p.add(smf.Control(at+length*int64(i)/steps, channel, control, uint8(from+(to-from)*i/steps)))
	}
}

// file ends the piece some beats after its last event: FluidSynth stops at the end.
func (p *tune) file(tail int64) *smf.File {
	f := &smf.File{Tracks: []smf.Track{{Events: p.events}}}
	sorted(f.Tracks[0].Events)
	f.Tracks[0].Events = append(f.Tracks[0].Events, smf.End(f.Tracks[0].End()+tail*beat))
	return f
}

// pieces are ten pieces that use what a synthesizer must do.
func pieces() map[string]*smf.File {
	return map[string]*smf.File{
		"chords": chords(), "drums": drums(), "bends": bends(), "volume and pan": volumes(), "sustain pedal": pedal(),
		"programs": programs(), "ensemble": ensemble(), "velocities": velocities(), "long tails": tails(), "wheel and effects": wheel(),
	}
}

func chords() *smf.File {
	p := &tune{}
	for bar, root := range []uint8{48, 53, 55, 48, 57, 50, 55, 48} {
		for beats := range int64(2) {
			for _, step := range []uint8{0, 12, 16, 19, 24} {
				p.note((int64(bar)*2+beats)*beat, beat*9/10, 0, root+step, 70+uint8(bar)*5)
			}
		}
	}
	return p.file(6)
}

func drums() *smf.File {
	p := &tune{}
	for i := range int64(32) {
		at := i * beat / 2
		p.note(at, 60, 9, []uint8{42, 42, 46, 42}[i%4], 60+uint8(i%4)*15)
		switch i % 4 {
		case 0:
			p.note(at, 60, 9, 36, 110)
		case 2:
			p.note(at, 60, 9, 38, 100)
		}
		if i >= 24 {
			p.note(at, 60, 9, []uint8{50, 48, 47, 45, 43, 41, 51, 49}[i-24], 105)
		}
	}
	return p.file(8)
}

func bends() *smf.File {
	p := &tune{}
	p.add(smf.Program(0, 0, 80), smf.Program(0, 1, 33))
	for _, n := range [][2]uint8{{101, 0}, {100, 0}, {6, 12}, {38, 0}} {
		p.add(smf.Control(0, 1, n[0], n[1]))
	}
	for i, key := range []uint8{60, 64, 67, 72, 71, 67, 62, 60} {
		at := int64(i) * beat
		p.note(at, beat*3/4, 0, key, 100)
		p.note(at, beat*3/4, 1, key-24, 100)
		for step := range 17 {
			p.add(smf.Bend(at+int64(step)*20, 0, []int{1, -1}[i%2]*step*511), smf.Bend(at+int64(step)*20, 1, step*255))
		}
		p.add(smf.Bend(at+beat*7/8, 0, 0), smf.Bend(at+beat*7/8, 1, 0))
	}
	return p.file(6)
}

func volumes() *smf.File {
	p := &tune{}
	p.add(smf.Program(0, 0, 48), smf.Program(0, 1, 19), smf.Program(0, 2, 24))
	for bar := range int64(4) {
		for _, key := range []uint8{55, 62, 67} {
			p.note(bar*4*beat, 4*beat-40, 0, key, 90)
		}
		p.note(bar*4*beat, 4*beat-40, 1, 43, 80)
		for i := range int64(8) {
			p.note(bar*4*beat+i*beat/2, beat/2-20, 2, 67+uint8(i), 90)
		}
	}
	p.sweep(0, 8*beat, 0, 7, 20, 127)
	p.sweep(8*beat, 8*beat, 0, 11, 127, 30)
	p.sweep(0, 16*beat, 1, 10, 0, 127)
	p.sweep(0, 16*beat, 2, 10, 127, 0)
	return p.file(6)
}

func pedal() *smf.File {
	p := &tune{}
	for bar := range int64(4) {
		p.add(smf.Control(bar*4*beat+10, 0, 64, 127), smf.Control(bar*4*beat+4*beat-20, 0, 64, 0))
		for i, key := range []uint8{48, 55, 60, 64, 67, 72, 76, 79} {
			p.note(bar*4*beat+int64(i)*beat/2, 60, 0, key+uint8(bar)*2, 85)
		}
	}
	return p.file(6)
}

func programs() *smf.File {
	p := &tune{}
	for i, program := range []uint8{0, 6, 11, 16, 22, 25, 30, 32, 40, 46, 52, 56, 61, 65, 71, 73, 81, 89, 104, 114} {
		at := int64(i) * beat
		p.add(smf.Program(at, 0, program))
		p.note(at, beat/3, 0, 60, 90)
		p.note(at+beat/2, beat/3, 0, 67, 100)
	}
	return p.file(6)
}

func ensemble() *smf.File {
	p := &tune{}
	for channel, program := range []uint8{73, 40, 0, 24, 32, 48, 61} {
		p.add(smf.Program(0, uint8(channel), program), smf.Control(0, uint8(channel), 10, uint8(16+16*channel)))
	}
	for i, root := range []uint8{60, 57, 53, 55, 60, 57, 53, 55} {
		at := int64(i) * 2 * beat
		p.note(at, 2*beat-30, 0, root+24, 90)
		p.note(at, beat-30, 1, root+16, 85)
		p.note(at+beat, beat-30, 1, root+19, 85)
		for step := range int64(4) {
			p.note(at+step*beat/2, beat/2-20, 2, root+[]uint8{0, 7, 12, 16}[step], 75)
			p.note(at+step*beat/2, beat/2-20, 3, root-12+[]uint8{0, 7, 4, 7}[step], 80)
			p.note(at+step*beat/2, 60, 9, []uint8{36, 42, 38, 42}[step], 90)
		}
		p.note(at, 2*beat-30, 4, root-24, 100)
		p.note(at, 2*beat-30, 5, root, 60)
		p.note(at+beat, beat/2, 6, root+7, 90)
	}
	return p.file(6)
}

func velocities() *smf.File {
	p := &tune{}
	p.add(smf.Program(0, 1, 56))
	for i, velocity := range []uint8{8, 20, 32, 44, 56, 64, 76, 88, 100, 112, 120, 127} {
		p.note(int64(i)*beat, beat/2, 0, 60, velocity)
		p.note(int64(i)*beat+beat/2, beat/3, 1, 67, velocity)
	}
	return p.file(6)
}

func tails() *smf.File {
	p := &tune{}
	p.add(smf.Program(0, 0, 11), smf.Program(0, 1, 14), smf.Program(0, 2, 91))
	p.note(beat, 60, 9, 49, 120)
	p.note(8*beat, beat, 0, 67, 110)
	p.note(12*beat, beat, 1, 60, 110)
	p.note(17*beat, 3*beat, 2, 55, 100)
	p.note(22*beat, 60, 9, 57, 110)
	p.note(28*beat, 2*beat, 0, 79, 100)
	p.note(32*beat, 60, 9, 52, 127)
	return p.file(16)
}

func wheel() *smf.File {
	p := &tune{}
	p.add(smf.Program(0, 0, 40), smf.Program(0, 1, 4), smf.Program(0, 2, 73))
	p.add(smf.Control(0, 0, 91, 127), smf.Control(0, 1, 93, 127), smf.Control(0, 2, 91, 0))
	for i, key := range []uint8{62, 66, 69, 74, 73, 69, 66, 62} {
		at := int64(i) * 2 * beat
		p.note(at, 2*beat-40, 0, key, 95)
		p.sweep(at, beat, 0, 1, 0, 127)
		p.note(at, beat-40, 1, key-12, 90)
		p.note(at+beat, beat-40, 1, key-5, 90)
		p.note(at+beat, beat-40, 2, key+12, 90)
		p.add(smf.Event{Time: at + beat + beat/4, Kind: smf.ChannelAftertouch, Channel: 2, Data1: 127}, smf.Event{Time: at, Kind: smf.ChannelAftertouch, Channel: 2})
	}
	return p.file(6)
}
