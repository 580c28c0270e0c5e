// Package abc parses ABC notation 2.1: it validates and summarizes tunes, transposes
// them without changing their layout, and converts them to MIDI files.
package abc

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// MaxText is the longest text in bytes. A typical tune has less than a hundredth of
// it; processing the longest takes about 200 MB of memory.
const MaxText = 256 << 10

// Tune is a parsed tune. Key, Meter, Unit and Tempo are those of the header; the
// body may change them.
type Tune struct {
	Number   string   `json:"number,omitempty"` // X:
	Titles   []string `json:"titles,omitempty"` // T:
	Composer string   `json:"composer,omitempty"`
	Key      Key      `json:"key"`
	Meter    Meter    `json:"meter"`
	Unit     Fraction `json:"unit"` // L:, the length of a plain note
	Tempo    *Tempo   `json:"tempo,omitempty"`
	Parts    string   `json:"parts,omitempty"` // P:, the order in which parts are played
	Header   []Item   `json:"header"`          // *Field and *Directive
	Voices   []*Voice `json:"voices"`          // at least one
	Body     []Item   `json:"body"`

	macros bool // some of the body is text of m: fields
}

// Summary summarizes a tune.
type Summary struct {
	Valid     bool         `json:"valid"`
	Errors    []Diagnostic `json:"errors"`
	Warnings  []Diagnostic `json:"warnings"`
	Title     string       `json:"title"`
	Composer  string       `json:"composer,omitempty"`
	Key       string       `json:"key"`             // such as "G major"
	Meter     string       `json:"meter,omitempty"` // as written
	Tempo     float64      `json:"tempo,omitempty"` // beats per minute, as written
	TempoBeat string       `json:"tempo_beat,omitempty"`
	Voices    int          `json:"voices"`
	NoteCount int          `json:"note_count"` // as written: repeats count once, grace notes not at all
	BarCount  int          `json:"bar_count"`  // of the longest voice, as written
}

// Parse parses the first tune of text. The tune is never nil: it has everything that
// could be parsed. Diagnostics describe the rest.
func Parse(text string) (*Tune, Diagnostics) {
	p := newParser(text)
	if p == nil {
		var d Diagnostics
		d.fail(Position{1, 1}, "a text of %d bytes is longer than %d", len(text), MaxText)
		return newTune(), d
	}
	p.tune()
	if p.more() {
		p.diag.warn(p.lines[0].at(0), "only the first tune of the text is read")
	}
	return p.out, p.diag
}

// Validate returns the errors and warnings of the first tune of text.
func Validate(text string) Diagnostics {
	_, diag := Parse(text)
	return diag
}

// Summarize parses and summarizes the first tune of text.
func Summarize(text string) Summary {
	tune, diag := Parse(text)
	s := Summary{
		Valid:    diag.Valid(),
		Errors:   append([]Diagnostic{}, diag.Errors...),
		Warnings: append([]Diagnostic{}, diag.Warnings...),
		Title:    strings.Join(tune.Titles, " / "),
		Composer: tune.Composer,
		Key:      tune.Key.String(),
		Meter:    tune.Meter.Text,
		Voices:   len(tune.Voices),
	}
	if tune.Tempo != nil {
		s.Tempo, s.TempoBeat = tune.Tempo.BPM, tune.Tempo.Beat.String()
	}
	for _, v := range tune.Voices {
		notes, bars := v.count()
		s.NoteCount += notes
		s.BarCount = max(s.BarCount, bars)
	}
	return s
}

// count counts notes and non-empty bars, as written.
func (v *Voice) count() (notes, bars int) {
	filled := 0
	for _, item := range v.Items {
		switch item := item.(type) {
		case *Note:
			notes++
			filled = 1
		case *Chord:
			notes += len(item.Notes)
			filled = 1
		case *Rest:
			filled = max(filled, 1)
			if item.Bars {
				filled = item.Length.Num
			}
		case *Bar:
			if item.line {
				bars += filled
				filled = 0
			}
		}
	}
	return notes, bars + filled
}

// maxDiagnostics is the largest number of errors, and of warnings, of a text.
const maxDiagnostics = 100

// Position is a place in the text; both count from 1, columns in characters.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Diagnostic is an error or warning at a position.
type Diagnostic struct {
	Position
	Message string `json:"message"`
}

// String reads "line 3, column 7: message".
func (d Diagnostic) String() string {
	return fmt.Sprintf("line %d, column %d: %s", d.Line, d.Column, d.Message)
}

// Diagnostics are the errors and warnings of a parse in order, at most a hundred of
// each. Errors make a tune invalid, warnings do not.
type Diagnostics struct {
	Errors   []Diagnostic `json:"errors"`
	Warnings []Diagnostic `json:"warnings"`
}

// Valid reports whether there are no errors.
func (d Diagnostics) Valid() bool { return len(d.Errors) == 0 }

// Err is nil for a valid tune, else a fault that names the first error and
// carries all of them as details.
func (d Diagnostics) Err() error {
	if d.Valid() {
		return nil
	}
	msg := "read abc: " + d.Errors[0].String()
	if more := len(d.Errors) - 1; more > 0 {
		msg += fmt.Sprintf(" (and %d more)", more)
	}
	return fault.New(fault.InvalidParams, "%s", msg).
		WithHint("correct the text at the lines named; a tune needs X:, T: and K: fields, then notes").
		WithDetails(d)
}

func (d *Diagnostics) fail(at Position, format string, args ...any) {
	d.Errors = note(d.Errors, at, format, args)
}

func (d *Diagnostics) warn(at Position, format string, args ...any) {
	d.Warnings = note(d.Warnings, at, format, args)
}

// warnOnce adds a warning unless another has the same text.
func (d *Diagnostics) warnOnce(at Position, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(d.Warnings, func(w Diagnostic) bool { return w.Message == text }) {
		d.warn(at, "%s", text)
	}
}

func note(list []Diagnostic, at Position, format string, args []any) []Diagnostic {
	if len(list) >= maxDiagnostics {
		return list
	}
	return append(list, Diagnostic{at, strings.ToValidUTF8(fmt.Sprintf(format, args...), "�")})
}

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

// Chord is notes sounding together, all as long as the first.
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

// line is one line of the text, without its end.
type line struct {
	text   string
	number int // from 1
	offset int // of its first byte in the whole text
}

// splitLines cuts text at \n, \r\n and \r.
func splitLines(text string) []line {
	var lines []line
	start := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '\n' && text[i] != '\r' {
			continue
		}
		lines = append(lines, line{text[start:i], len(lines) + 1, start})
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		start = i + 1
	}
	return append(lines, line{text[start:], len(lines) + 1, start})
}

// at is the position of a byte of the line.
func (l line) at(i int) Position {
	return Position{l.number, utf8.RuneCountInString(l.text[:min(i, len(l.text))]) + 1}
}

// blank reports whether nothing is on the line.
func (l line) blank() bool { return strings.TrimSpace(l.text) == "" }

// field splits a line "K:G % comment" into its letter and its value; ok is
// false for lines of another sort. start is the value's first byte.
func (l line) field() (name byte, value string, start int, ok bool) {
	if len(l.text) < 2 || l.text[1] != ':' {
		return 0, "", 0, false
	}
	name = l.text[0]
	if (name < 'A' || name > 'Z') && (name < 'a' || name > 'z') && name != '+' {
		return 0, "", 0, false
	}
	value, start = trimmed(uncommented(l.text[2:]), 2)
	return name, value, start, true
}

// uncommented cuts a comment off; \% is no comment.
func uncommented(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && (i == 0 || text[i-1] != '\\') {
			return text[:i]
		}
	}
	return text
}

// trimmed cuts outer space off text that begins at start, and moves start along.
func trimmed(text string, start int) (string, int) {
	left := strings.TrimLeft(text, " \t")
	return strings.TrimRight(left, " \t"), start + len(text) - len(left)
}

// Fraction is a positive number such as 3/2. The parser keeps both parts small.
type Fraction struct {
	Num int `json:"num"`
	Den int `json:"den"`
}

// maxPart bounds numerators and denominators in the text.
const maxPart = 9999

// String reads "3/2", or "3" for whole numbers.
func (f Fraction) String() string {
	if f.Den == 1 {
		return fmt.Sprint(f.Num)
	}
	return fmt.Sprintf("%d/%d", f.Num, f.Den)
}

// whole is the number of time units in a whole note. Dividing it by the
// denominators that music uses (powers of two, 3, 9, 27, 5, 7, 11) is exact.
const whole = 1024 * 27 * 5 * 7 * 11

// maxUnits is the longest time a tune may last: about a million whole notes.
const maxUnits = whole << 20

// scale multiplies a time by num/den, rounded, and stops at maxUnits. With
// times up to maxUnits and parts up to maxPart nothing overflows.
func scale(units int64, num, den int) int64 {
	return min((units*int64(num)+int64(den)/2)/int64(den), maxUnits)
}

// Pitches are spelled on the line of fifths: … Bb F C G D A E B F# …, with C at
// 0. A letter is seven places from its sharp, so that moving every note by the
// same number of places transposes without changing how intervals are spelled.

// fifths lists the letters without accidental, from place −1 on.
const fifths = "FCGDAEB"

// letters lists them from low to high.
const letters = "CDEFGAB"

// semitones is how far each letter of letters is above C.
var semitones = [7]int{0, 2, 4, 5, 7, 9, 11}

// spelling is a pitch as notation writes it.
type spelling struct {
	letter byte // C D E F G A B
	alter  int  // sharps positive, flats negative
	octave int  // 0 holds middle C
}

// place is the spelling's place on the line of fifths.
func (s spelling) place() int { return strings.IndexByte(fifths, s.letter) - 1 + 7*s.alter }

// midi is the note number; middle C is 60.
func (s spelling) midi() int {
	return 60 + 12*s.octave + semitones[strings.IndexByte(letters, s.letter)] + s.alter
}

// spell is the pitch with a note number, on a place of the line of fifths.
func spell(place, midi int) spelling {
	s := spelling{letter: fifths[mod(place+1, 7)], alter: floorDiv(place+1, 7)}
	s.octave = floorDiv(midi-s.alter-60, 12)
	return s
}

// String writes the pitch as ABC does: _B, c, d'. The accidental is left out.
func (s spelling) String() string {
	if s.octave >= 1 {
		return strings.ToLower(string(s.letter)) + strings.Repeat("'", s.octave-1)
	}
	return string(s.letter) + strings.Repeat(",", -s.octave)
}

// accidentals writes alterations from −2 to 2.
var accidentals = [5]string{"__", "_", "=", "^", "^^"}

// name writes a letter with # and b, as keys and chord symbols do.
func (s spelling) name() string {
	if s.alter < 0 {
		return string(s.letter) + strings.Repeat("b", -s.alter)
	}
	return string(s.letter) + strings.Repeat("#", s.alter)
}

// parseName reads a letter with # and b (or ♯ and ♭) at the start of text and
// returns how many bytes it took, none when there is no letter.
func parseName(text string) (s spelling, n int) {
	if text == "" || text[0] < 'A' || text[0] > 'G' {
		return spelling{}, 0
	}
	s.letter, n = text[0], 1
	for _, sign := range []struct {
		text  string
		alter int
	}{{"#", 1}, {"b", -1}, {"♯", 1}, {"♭", -1}} {
		if strings.HasPrefix(text[1:], sign.text) {
			s.alter = sign.alter
			return s, 1 + len(sign.text)
		}
	}
	return s, n
}

// nearest brings a place within accidentals that can be written, by a change
// of name that leaves the sound: C### becomes D#.
func nearest(place int) int {
	for place > 19 { // B## is 19
		place -= 12
	}
	for place < -15 { // Fbb is −15
		place += 12
	}
	return place
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func mod(a, b int) int { return a - b*floorDiv(a, b) }
