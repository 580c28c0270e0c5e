package abc

// Item is one thing in the body of a tune: *Field, *Directive, *Note, *Rest,
// *Chord, *Grace, *Bar, *Tuplet, *BrokenRhythm, *Slur, *Mark or *Overlay.
type Item interface {
	place() *Place
}

// Place is the position of an item. Kind names the item's type in JSON.
type Place struct {
	Kind string `json:"kind"`
	Position
	start, end int // byte offsets into the text
}

func (p *Place) place() *Place { return p }

// Field is a line such as "K:G", or the same inside music: "[K:G]".
type Field struct {
	Place
	Name   string `json:"name"`  // one letter
	Value  string `json:"value"` // without comment and outer space
	Inline bool   `json:"inline,omitempty"`

	valueStart int // byte offset of Value
}

// Directive is a stylesheet line "%%name value", or "I:name value".
type Directive struct {
	Place
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Note is one note, alone or in a chord or grace group.
type Note struct {
	Place
	Letter     string   `json:"letter"`              // C D E F G A B
	Octave     int      `json:"octave"`              // 0 for C to B, 1 for c to b
	Accidental *int     `json:"accidental"`          // as written: −2 to 2, 0 is natural, nil is none
	Microtone  float64  `json:"microtone,omitempty"` // semitones above or below the accidental, of ^/ or _3/4
	Length     Fraction `json:"length"`              // in unit note lengths
	Tie        bool     `json:"tie,omitempty"`

	pitchEnd int // byte offset after accidental, letter and octave marks
}

// Rest is a silence: z and x, or whole bars of it: Z and X.
type Rest struct {
	Place
	Length    Fraction `json:"length"` // in unit note lengths, or in bars
	Bars      bool     `json:"bars,omitempty"`
	Invisible bool     `json:"invisible,omitempty"`
}

// Chord is notes sounding together; it lasts as long as its first note.
type Chord struct {
	Place
	Notes  []*Note  `json:"notes"`
	Length Fraction `json:"length"` // multiplies the lengths of the notes
	Tie    bool     `json:"tie,omitempty"`
}

// Grace is a group of grace notes before a note.
type Grace struct {
	Place
	Notes   []*Note `json:"notes"`
	Slashed bool    `json:"slashed,omitempty"` // an acciaccatura
}

// Bar is a bar line, or the beginning of a numbered ending.
type Bar struct {
	Place
	Text   string `json:"text"`             // as written
	Ends   int    `json:"ends,omitempty"`   // how often the section before is played again
	Begins int    `json:"begins,omitempty"` // the same, at the start of a section
	Double bool   `json:"double,omitempty"` // thin-thin, thin-thick or thick-thin
	Ending []int  `json:"ending,omitempty"` // the passes that play what follows

	line bool // false for an ending that begins within a bar
}

// Tuplet says that the next Count notes take the time of With in place of Notes.
type Tuplet struct {
	Place
	Notes int `json:"notes"`
	With  int `json:"with"`  // 0: by the meter
	Count int `json:"count"` // 0: Notes
}

// BrokenRhythm is > or <: the note on the pointed side gives time to the other.
type BrokenRhythm struct {
	Place
	Dots int `json:"dots"` // the first note is lengthened when positive, shortened when negative
}

// Slur opens or closes a slur.
type Slur struct {
	Place
	Open bool `json:"open"`
}

// Mark belongs to the next note: a decoration, a chord symbol or an annotation.
type Mark struct {
	Place
	Class string `json:"class"` // decoration, chord_symbol or annotation
	Text  string `json:"text"`

	textStart int // byte offset of Text
}

// Overlay is &: what follows sounds together with the bar so far.
type Overlay struct {
	Place
}
