package audit

import (
	"iter"
	"slices"
	"strings"
)

// sieve tells which entries a filter picks. Most are told by their text: reading all
// of them would take a hundred times as long.
type sieve struct {
	Filter
	who    []part   // one of them is in the line of an entry that is picked
	others []part   // and all of these
	tool   []string // pieces of the subject, around what stands for any letters
}

func newSieve(f Filter) *sieve {
	f.Who, f.Tool, f.Decision = whole(f.Who), whole(f.Tool), whole(f.Decision) // as entries are
	s := &sieve{Filter: f, tool: strings.Split(f.Tool, "*")}
	if f.Who != "" {
		s.who = []part{member("who", f.Who), member("name", f.Who)}
	}
	if f.Decision != "" {
		s.others = append(s.others, member("decision", f.Decision))
	}
	if f.Tool != "" {
		s.others = append(s.others, s.subject())
	}
	return s
}

// part is what stands in a line: a value, behind the name of its member. The value is
// looked for first, for it is rarer than the quotation mark that a name begins with.
type part struct{ value, name string }

func member(name, value string) part {
	text := string(appendText(nil, "", value))
	return part{value: text[1:], name: `"` + name + `":"`}
}

func (p part) in(text string) bool {
	return strings.Contains(text, p.value) && (p.name == "" || strings.Contains(text, p.name+p.value))
}

// subject is what is in the line of an entry whose subject fits.
func (s *sieve) subject() part {
	if len(s.tool) == 1 {
		return member("subject", s.Tool)
	}
	if s.tool[0] != "" {
		begins := member("subject", s.tool[0])
		begins.value = strings.TrimSuffix(begins.value, `"`)
		return begins
	}
	longest := slices.MaxFunc(s.tool, func(a, b string) int { return len(a) - len(b) })
	return part{value: strings.Trim(string(appendText(nil, "", longest)), `"`)}
}

// entries are those of a page that are picked.
func (s *sieve) entries(p *page) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if !s.mayPick(p.entries) {
			return
		}
		for line := range p.lines() {
			if !s.mayPick(line) {
				continue
			}
			if e, err := decoded(line); err == nil && s.picks(&e) && !yield(e) {
				return
			}
		}
	}
}

// mayPick looks at one line or many as they are.
func (s *sieve) mayPick(text string) bool {
	for _, p := range s.others {
		if !p.in(text) {
			return false
		}
	}
	return len(s.who) == 0 || slices.ContainsFunc(s.who, func(p part) bool { return p.in(text) })
}

func (s *sieve) picks(e *Entry) bool {
	switch {
	case s.Who != "" && e.Who != s.Who && e.Name != s.Who,
		s.Decision != "" && e.Decision != s.Decision,
		s.Tool != "" && !fits(e.Subject, s.tool),
		s.Node != "" && (e.Node != s.Node || e.Seq <= s.After):
		return false
	}
	return !e.At.Before(s.Since) && (s.Until.IsZero() || e.At.Before(s.Until))
}

// fits tells whether text is the pieces, with any letters between them.
func fits(text string, pieces []string) bool {
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return text == first
	}
	text, begins := strings.CutPrefix(text, first)
	text, ends := strings.CutSuffix(text, last)
	for _, piece := range pieces[1 : len(pieces)-1] {
		var found bool
		if _, text, found = strings.Cut(text, piece); !found {
			return false
		}
	}
	return begins && ends
}
