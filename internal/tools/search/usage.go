package search

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/tool"
)

// Use says that a tool was called after searches with a word.
type Use struct {
	Word   string // as Words returns it
	Ref    tool.Ref
	Weight float64 // how often, less for what is long ago
}

// saturationUsed is how soon further uses of a tool stop counting.
const saturationUsed = 0.2

// Limits of the words that may be learned.
const (
	mostWords      = 48
	longestNumeric = 4 // letters of a word with digits, such as k8s: longer ones are data
)

// quoted is what Words leaves out. It takes a while to compile, and so is when it is used first.
var quoted = lazyregexp.New("\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|`[^`\n]{0,400}`|\\B'[^'\n]{0,200}'\\B|\\([^()\n]{0,400}\\)|\\[[^\\[\\]\n]{0,400}\\]|\\{[^{}\n]{0,400}\\}")

// Words returns the words of a search that say what is searched for, each once, in the form
// in which words are compared. Quoted text, addresses and numbers are data and left out.
func Words(texts []string) []string {
	var found []string
	seen := map[string]bool{}
	for _, text := range texts[:min(len(texts), MostTexts)] {
		for _, t := range terms(quoted().ReplaceAllString(withKinds(cut(text, longestQuery)), " "), mostQueryWords) {
			if t.stem == "" || t.weight < 1 || filler[t.typed] || seen[t.stem] || len(found) == mostWords || isData(t.typed) {
				continue
			}
			seen[t.stem] = true
			found = append(found, t.stem)
		}
	}
	return found
}

func isData(word string) bool {
	return strings.ContainsAny(word, "0123456789") && (len(word) > longestNumeric || isNumber(word))
}

// isNumber reports whether a word is a value rather than a word.
func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

// addUse adds to the scores how much of the nearest wording stood in searches after which a tool
// was called.
func (s *search) addUse(scores []float32, texts []string) {
	if len(s.used) == 0 {
		return
	}
	used := map[tool.Ref]float32{}
	for _, text := range texts {
		for ref, share := range usedAfter(text, s.used) {
			used[ref] = max(used[ref], share)
		}
	}
	for n, p := range s.parts {
		for i := range p.Tools {
			if share := used[p.Tools[i].Ref]; share > 0 {
				at := s.offsets[n] + i
				scores[at] += shareUse * share * share * share
				s.named[at], s.fit = true, max(s.fit, share)
			}
		}
	}
}

// usedAfter is how many of the words of a text stood in searches after which tools were called,
// from 0 to 1.
func usedAfter(text string, uses []Use) map[tool.Ref]float32 {
	words := Words([]string{text})
	share := map[tool.Ref]float32{}
	for _, u := range uses {
		if u.Weight > 0 && slices.Contains(words, u.Word) {
			share[u.Ref] += float32(u.Weight/(u.Weight+saturationUsed)) / float32(len(words))
		}
	}
	return share
}
