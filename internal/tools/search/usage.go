package search

import (
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

// Weights of what was learned from use. Often used words weigh about as much as words of
// the tool's name, never more.
const (
	weightUsed     = 1.8
	saturationUsed = 1.2
)

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

// used is a tool of a part that was called after searches with a term.
type used struct {
	tool   uint32
	weight float32
	gain   float32
}

// locate finds the tools that were used, by word and part. Most callers have used few.
func (s *search) locate(uses []Use) map[string][][]used {
	if len(uses) == 0 {
		return nil
	}
	wanted := map[tool.Ref][]Use{}
	for _, u := range uses {
		if u.Weight > 0 {
			wanted[u.Ref] = append(wanted[u.Ref], u)
		}
	}
	found := map[string][][]used{}
	for n, p := range s.parts {
		for i := range p.Tools {
			for _, u := range wanted[p.Tools[i].Ref] {
				if found[u.Word] == nil {
					found[u.Word] = make([][]used, len(s.parts))
				}
				weight := float32(weightUsed * u.Weight / (u.Weight + saturationUsed))
				found[u.Word][n] = append(found[u.Word][n], used{tool: uint32(i), weight: weight})
			}
		}
	}
	return found
}

// shareOf is how much of a query, by the weight of its words, a tool was used after. A tool
// that was used after the same query counts in full, one that only shares a word of it
// little.
func (s *search) shareOf(wanted []term) map[[2]uint32]float32 {
	if len(s.used) == 0 {
		return nil
	}
	total := float32(0)
	share := map[[2]uint32]float32{}
	for _, t := range wanted {
		if t.stem == "" {
			continue
		}
		total += t.weight
		for n, part := range s.used[t.stem] {
			for _, u := range part {
				share[[2]uint32{uint32(n), u.tool}] += t.weight
			}
		}
	}
	for key := range share {
		share[key] /= total
	}
	return share
}

// learned adds the tools that were used after searches with the term, and reports whether
// there are any. holders is how many tools hold the word in their definitions.
func (s *search) learned(p *probe, t term, holders int) bool {
	byPart := s.used[t.stem]
	if t.stem == "" || byPart == nil {
		return false
	}
	count := 0
	for _, part := range byPart {
		count += len(part)
	}
	rare := t.weight * rarity(s.tools, max(holders, count))
	p.used = make([][]used, len(byPart))
	for n, part := range byPart {
		for _, u := range part {
			u.gain = u.weight * rare * s.share[[2]uint32{uint32(n), u.tool}]
			p.used[n] = append(p.used[n], u)
		}
	}
	return true
}
