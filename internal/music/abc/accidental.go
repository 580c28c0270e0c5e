package abc

// accidentalMemory computes the meaning of a note without accidental: it stores
// the key, the accidentals of the bar, and those that a tie carries over.
type accidentalMemory struct {
	key    Key
	scope  string           // how far accidentals reach: not, octave, or all octaves when it is anything else
	alters map[spelling]int // of this bar; see reach
	tied   map[spelling]int // of notes tied to the next one, by letter and octave
}

// reach returns the pitches that an accidental applies to, as a key of alters.
func (m *accidentalMemory) reach(s spelling) spelling {
	s.alter = 0
	if m.scope != "octave" {
		s.octave = 0
	}
	return s
}

// implied returns the alteration of a note written without accidental.
func (m *accidentalMemory) implied(letter byte, octave int) int {
	s := spelling{letter: letter, octave: octave}
	if alter, ok := m.alters[m.reach(s)]; ok {
		return alter
	}
	if alter, ok := m.tied[s]; ok {
		return alter
	}
	return m.key.alter(letter)
}

// write records an accidental written before a note.
func (m *accidentalMemory) write(s spelling) {
	if m.scope == "not" {
		return
	}
	if m.alters == nil {
		m.alters = map[spelling]int{}
	}
	m.alters[m.reach(s)] = s.alter
}

// pitch computes the spelling of a note.
func (m *accidentalMemory) pitch(n *Note) spelling {
	s := spelling{letter: n.Letter[0], octave: n.Octave}
	if n.Accidental == nil {
		s.alter = m.implied(s.letter, s.octave)
		return s
	}
	s.alter = *n.Accidental
	m.write(s)
	return s
}

// resolve computes the pitches of a note or chord, and carries over ties; no notes
// are a rest.
func (m *accidentalMemory) resolve(notes []*Note, tie bool) []spelling {
	pitches := make([]spelling, len(notes))
	for i, n := range notes {
		pitches[i] = m.pitch(n)
	}
	m.carry(notes, pitches, tie)
	return pitches
}

// carry replaces the notes that are tied to the next note.
func (m *accidentalMemory) carry(notes []*Note, pitches []spelling, tie bool) {
	m.tied = nil
	for i, n := range notes {
		if !tie && !n.Tie {
			continue
		}
		if m.tied == nil {
			m.tied = map[spelling]int{}
		}
		s := pitches[i]
		m.tied[spelling{letter: s.letter, octave: s.octave}] = s.alter
	}
}

// bar clears the accidentals of the bar.
func (m *accidentalMemory) bar() { m.alters = nil }
