package pin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Finding is text in a definition that does not belong there.
type Finding struct {
	Code Code   `json:"code"`
	Path string `json:"path"` // where in the definition
	Text string `json:"text"` // what it is, hidden characters made visible
}

// Code is the kind of a finding.
type Code string

// The codes.
const (
	HiddenText   Code = "hidden_characters" // characters that a person does not see but a model reads
	Orders       Code = "instructions"      // instructions to the model, or to hide something
	OtherTool    Code = "other_tool"        // names a tool of another upstream
	SecretPath   Code = "secret_path"       // names a place where secrets are stored
	Encoded      Code = "encoded"           // an unreadable blob
	TooLong      Code = "too_long"
	Repeated     Code = "repeated_member" // a member twice: readers see different ones
	Unreadable   Code = "unreadable"      // bytes that are not text
	ShadowsOwn   Code = "shadows_own"     // named like one of our own tools
	ShadowsOther Code = "shadows_other"   // its name imitates another tool's
)

// Limits of an ordinary description.
const (
	longestText       = 8 << 10
	longestDefinition = 64 << 10
	maxFindings       = 20
	excerptLength     = 120
)

// scanner scans a definition.
type scanner struct {
	walker
	content *content
	texts   int    // how many were scanned
	read    []byte // the current text, normalized
}

// scan scans a definition and its tree; ok means that it is canonical JSON. The same
// definition always gives the same findings.
func scan(definition []byte, tree *node, ok bool) *content {
	repeated := ok && tree.repeats()
	s := scanner{content: &content{}}
	s.walker = walker{visit: s.text, twice: repeated || !ok}
	if !utf8.Valid(definition) {
		s.add(Unreadable, "it is not valid UTF-8")
	}
	if repeated {
		s.add(Repeated, "an object has two members of one name")
	}
	if len(definition) > longestDefinition {
		s.add(TooLong, fmt.Sprintf("%d bytes", len(definition)))
	}
	s.value(tree)
	s.content.findings = slices.Clip(s.content.findings)
	return s.content
}

func (s *scanner) add(code Code, text string) {
	if len(s.content.findings) < maxFindings {
		s.content.findings = append(s.content.findings, Finding{code, s.where(), text})
	}
}

func (s *scanner) text(text string) {
	if len(text) > longestText {
		s.add(TooLong, fmt.Sprintf("%d characters", utf8.RuneCountInString(text)))
	}
	if !plainText(text) {
		s.hidden(text)
	}
	s.read = appendNormalized(s.read[:0], text)
	seen, candidates := s.words()
	for i := range patterns {
		if p := &patterns[i]; seen&p.needs == p.needs {
			if at := p.words().FindIndex(s.read); at != nil {
				s.add(p.code, excerpt(string(s.read), at))
			}
		}
	}
	if isBlob(text) {
		s.add(Encoded, excerpt(text, blob().FindStringIndex(text)))
	}
	s.addCandidates(candidates)
	s.texts++
}

// words scans the words of the text: seen are the marks of significant ones, candidates
// those that could be names of tools, separated by blanks.
func (s *scanner) words() (seen marks, candidates []byte) {
	for at := 0; at < len(s.read); {
		begin, word := at, at
		for ; at < len(s.read) && kinds[s.read[at]] != other; at++ {
			if kinds[s.read[at]] == joint {
				seen |= neededWords[string(s.read[word:at])]
				word = at + 1
			}
		}
		seen |= neededWords[string(s.read[word:at])]
		if name := bytes.Trim(s.read[begin:at], ".-"); len(name) >= 8 && bytes.ContainsAny(name, "_-.") {
			candidates = append(append(candidates, name...), ' ')
		}
		at++
	}
	return seen, candidates
}

// addCandidates stores words that could be names, unless there are too many findings already.
func (s *scanner) addCandidates(words []byte) {
	if before := len(s.content.findings); len(words) > 0 && before < maxFindings {
		s.content.candidates = append(s.content.candidates, candidates{before, s.texts, string(words[:len(words)-1])})
	}
}

func (s *scanner) hidden(text string) {
	for at, r := range text {
		what := invisibleKind(r)
		if r == 0x200d && at > 0 { // joins the parts of an emoji
			if before, _ := utf8.DecodeLastRuneInString(text[:at]); before > 0x2190 {
				what = ""
			}
		}
		if what != "" {
			s.add(HiddenText, what+": "+excerpt(text, []int{at, at + utf8.RuneLen(r)}))
			return
		}
	}
}

// excerpt is a finding with a little context.
func excerpt(text string, at []int) string {
	const around = 24
	begin, end := max(0, at[0]-around), min(len(text), at[1]+around)
	cut := strings.ToValidUTF8(text[begin:end], "")
	if len(cut) > excerptLength {
		cut = strings.ToValidUTF8(cut[:excerptLength], "") + "…"
	}
	return strings.Join(strings.Fields(Visible(cut)), " ")
}
