package abc

import "strings"

// Voice is one part of a tune: the items of the body that belong to it, and
// how it sounds.
type Voice struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	Octave     int    `json:"octave,omitempty"`     // octaves to move when sounding
	Transpose  int    `json:"transpose,omitempty"`  // semitones to move when sounding
	Percussion bool   `json:"percussion,omitempty"` // clef=perc: never transposed
	Items      []Item `json:"-"`                    // in the order of the text

	steps []step // the items with pitches and times worked out
}

// clefs are the names that may stand in K: and V: fields without "clef=".
var clefs = map[string]bool{
	"treble": true, "alto": true, "tenor": true, "bass": true, "perc": true, "soprano": true, "mezzosoprano": true,
	"baritone": true, "auto": true, "G": true, "F": true, "C": true, "P": true,
}

// sounding holds the properties of a K: or V: field that affect pitch; nil means
// not given.
type sounding struct {
	name              string
	octave, transpose *int
	clefOctave        *int
	percussion        bool
}

// parseProperties reads "clef=bass-8 octave=1 transpose=-2 name="Cello"" and
// bare clef names. Other properties concern the page, not the sound.
func parseProperties(text string) (s sounding) {
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		var name, value string
		name, value, text = nextProperty(text)
		switch name {
		case "name", "nm":
			s.name = value
		case "octave":
			if n, ok := parseInt(value); ok && n >= -10 && n <= 10 {
				s.octave = &n
			}
		case "transpose", "t":
			if n, ok := parseInt(value); ok && n >= -127 && n <= 127 {
				s.transpose = &n
			}
		case "clef":
			s.clef(value)
		case "":
			if clefs[strings.TrimRight(value, "+-0123456789")] {
				s.clef(value)
			}
		}
	}
	return s
}

// nextProperty cuts one property off: name=value, name="value" or a bare word.
func nextProperty(text string) (name, value, rest string) {
	end := strings.IndexAny(text, "= \t")
	if end < 0 || text[end] != '=' {
		word, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
		return "", word, rest
	}
	name, text = text[:end], text[end+1:]
	if strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text[1:], `"`)
		return name, value, rest
	}
	end = strings.IndexAny(text, " \t")
	if end < 0 {
		end = len(text)
	}
	return name, text[:end], text[end:]
}

// clef reads a clef name with its octave mark.
func (s *sounding) clef(value string) {
	octave := 0
	for _, mark := range []struct {
		suffix  string
		octaves int
	}{{"-8", -1}, {"+8", 1}, {"-15", -2}, {"+15", 2}} {
		if strings.HasSuffix(value, mark.suffix) {
			octave = mark.octaves
		}
	}
	s.clefOctave = &octave
	s.percussion = strings.HasPrefix(value, "perc") || value == "P"
}

// apply sets the properties that were given.
func (v *Voice) apply(s sounding) {
	if s.name != "" {
		v.Name = s.name
	}
	if s.clefOctave != nil {
		v.Octave = *s.clefOctave
		v.Percussion = s.percussion
	}
	if s.octave != nil {
		v.Octave = *s.octave
	}
	if s.transpose != nil {
		v.Transpose = *s.transpose
	}
}
