package search

import (
	"slices"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Weights of titles.
const (
	titleMinimum = float32(0.75) // of a score when the query asks for nothing of the title
	factorTitle  = float32(2)    // of a title that says what the query says, and no more
	weightVerb   = float32(0.75) // of a verb in a title, compared with a noun
	factorForm   = float32(0.7)  // of one thing in place of several, and the reverse
	shareUsed    = float32(0.5)  // of its title that counts as asked for, of a tool that was used after one of the words

	factorRequired   = float32(0.98) // per required argument
	mostRequired     = 8
	factorDeprecated = float32(0.5)
)

// titleWord is a word of a tool's title that says something.
type titleWord struct {
	word uint32
	kind wordKind
	form wordForm
}

// wordKind is what a word of a title is.
type wordKind uint8

// Kinds of words.
const (
	noun wordKind = iota
	actingVerb
	readingVerb
)

// wordForm is whether a noun means one thing or several.
type wordForm uint8

// Forms of words.
const (
	anyForm wordForm = iota
	singularForm
	pluralForm
)

func formOf(word string) wordForm {
	if len(word) < 4 || hasAnySuffix(word, "ss", "us", "is") {
		return anyForm
	}
	if singular(word) != word {
		return pluralForm
	}
	return singularForm
}

// title notes the words of a tool's title, or of its name if it has none.
func (b *builder) title(info *tool.Info) {
	text, v := info.Title, vocabulary()
	if text == "" {
		text = info.Name
	}
	start := len(b.titles)
	words(text, func(word string) {
		if filler[word] || v.common[word] {
			return
		}
		root := stem(word)
		one := titleWord{word: b.id(root), form: formOf(word)}
		switch {
		case readingVerbs()[root]:
			one.kind = readingVerb
		case v.verbs[root]:
			one.kind = actingVerb
		}
		if !slices.ContainsFunc(b.titles[start:], func(t titleWord) bool { return t.word == one.word }) {
			b.titles = append(b.titles, one)
		}
	})
}

// titleOf returns the words of a tool's title.
func (x *Index) titleOf(tool int) []titleWord {
	start := uint32(0)
	if tool > 0 {
		start = x.ends[tool-1]
	}
	return x.titles[start:x.ends[tool]]
}

// asked is how surely a word is meant by the query, from 0 to 1, and in which form.
type asked struct {
	factor float32
	form   wordForm
}

// ask notes which indexed words of a part are meant by the query. The result is valid
// until the next call, and answered must be called before that.
func (s *search) ask(part int, probes []probe) []asked {
	if words := len(s.parts[part].Index.words); len(s.asked) < words {
		s.asked = make([]asked, words)
	}
	for i := range probes {
		for _, m := range probes[i].matches[part] {
			if m.factor > s.asked[m.word].factor {
				s.asked[m.word] = asked{m.factor, probes[i].form}
			}
		}
	}
	return s.asked
}

// answered clears what ask has noted, of which there is little.
func (s *search) answered(part int, probes []probe) {
	for i := range probes {
		for _, m := range probes[i].matches[part] {
			s.asked[m.word] = asked{}
		}
	}
}

// titleShare is how much of a tool's title the query asks for, from 0 to 1: a tool that
// does just what is asked comes before one that does something more special. Who asks for
// things need not say that they are to be listed.
func (x *Index) titleShare(tool int, query []asked, want intent) float32 {
	sum, total := float32(0), float32(0)
	for _, t := range x.titleOf(tool) {
		q, weight := query[t.word], float32(1)
		switch {
		case t.kind == readingVerb && (want == asks || want == reads) && q.factor < 1:
			continue
		case t.kind != noun:
			weight = weightVerb
		case q.form != anyForm && t.form != anyForm && q.form != t.form:
			q.factor *= factorForm
		}
		sum += weight * q.factor
		total += weight
	}
	if total == 0 {
		return 0
	}
	return sum / total
}

// aptness is how well a tool fits beyond the words that match: how much of its title the
// query asks for, or after how much of the query it was used before. covered is how much of
// the query the tool covers.
func (s *search) aptness(part, tool int, query []asked, covered float32) float32 {
	share := s.parts[part].Index.titleShare(tool, query, s.intent)
	if used := s.share[[2]uint32{uint32(part), uint32(tool)}]; used > 0 {
		share = max(share, shareUsed+(1-shareUsed)*used)
	}
	same := share * covered
	return (titleMinimum + (1-titleMinimum)*share) * (1 + (factorTitle-1)*same*same*same)
}

// liking is a factor of a tool's scores, whatever the query: tools that should no longer
// be used come late, and of two that fit equally well that which needs less comes first.
func liking(info *tool.Info) float32 {
	factor := float32(1)
	list, _ := rawjson.Get(info.Input, "required")
	names, _ := rawjson.Items(list)
	for range min(len(names), mostRequired) {
		factor *= factorRequired
	}
	if info.Deprecated() {
		factor *= factorDeprecated
	}
	return factor
}
