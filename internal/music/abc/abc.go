// Package abc parses ABC notation 2.1: it validates and summarizes tunes, transposes
// them without changing their layout, and converts them to MIDI files.
package abc

import "strings"

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
