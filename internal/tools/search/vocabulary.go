package search

import (
	"cmp"
	_ "embed"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/suggest"
)

// Factors of a match with other words than those of the query, by how sure it is that they
// mean the same.
const (
	factorPhrase   = float32(0.8)
	factorEveryday = float32(0.65)
	factorRelated  = float32(0.55)
)

// The data: how people say what tools do, words that say little, and what tools do.
var (
	//go:embed data/everyday.txt
	everydayText string
	//go:embed data/thesaurus.txt
	thesaurusText string
	//go:embed data/common.txt
	commonText string
	//go:embed data/toolwords.txt
	toolWordsText string
)

// alternative is a word that means about the same as one of the query.
type alternative struct {
	stem   string
	factor float32
}

// phrase is several words that mean something together.
type phrase struct {
	words []string // stems
	means []alternative
}

// words of English that the search knows.
type knownWords struct {
	single  map[string][]alternative // by stem
	phrases map[string][]phrase      // by the stem of the first word, longest first
	common  map[string]bool          // as they are typed
	verbs   map[string]bool          // stems of what tools do
}

// vocabulary reads the data once.
var vocabulary = sync.OnceValue(func() *knownWords {
	v := &knownWords{
		single: map[string][]alternative{}, phrases: map[string][]phrase{}, common: map[string]bool{}, verbs: map[string]bool{},
	}
	for line := range dataLines(commonText) {
		maps.Copy(v.common, wordSet(line))
	}
	for line := range dataLines(toolWordsText) {
		for word := range strings.FieldsSeq(line) {
			v.verbs[stem(word)] = true
		}
	}
	for line := range dataLines(everydayText) {
		phrases, meaning, _ := strings.Cut(line, " > ")
		for one := range strings.SplitSeq(phrases, " / ") {
			v.means(one, meaning, factorEveryday)
		}
	}
	for line := range dataLines(thesaurusText) {
		for word := range strings.FieldsSeq(line) {
			v.means(word, line, factorRelated)
		}
	}
	for _, list := range v.phrases {
		slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return v
})

// means adds what a word or a phrase means.
func (v *knownWords) means(text, meaning string, factor float32) {
	var stems []string
	for word := range strings.FieldsSeq(text) {
		stems = append(stems, stem(word))
	}
	if len(stems) > 1 {
		factor = factorPhrase
	}
	var means []alternative
	for word := range strings.FieldsSeq(meaning) {
		if s := stem(word); s != stems[0] || len(stems) > 1 {
			means = append(means, alternative{s, factor})
		}
	}
	if len(stems) == 1 {
		v.single[stems[0]] = addAlternatives(v.single[stems[0]], means)
		return
	}
	v.phrases[stems[0]] = append(v.phrases[stems[0]], phrase{stems, means})
}

// addAlternatives appends those that are new; earlier ones are surer.
func addAlternatives(to, more []alternative) []alternative {
	for _, m := range more {
		if !slices.ContainsFunc(to, func(a alternative) bool { return a.stem == m.stem }) {
			to = append(to, m)
		}
	}
	return to
}

// dataLines are the lines of a file without comments.
func dataLines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// Lexicon holds every indexed word of every namespace once, so that a misspelt word is
// compared with all words a single time. Words of removed indexes stay until there are
// too many.
type Lexicon struct {
	mu       sync.RWMutex
	known    map[string]struct{}
	words    []string
	outlines []outline
}

func NewLexicon() *Lexicon { return &Lexicon{known: map[string]struct{}{}} }

// Add adds the words of an index.
func (l *Lexicon) Add(x *Index) { l.add(x.words) }

// has reports whether a word is indexed.
func (l *Lexicon) has(word string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, known := l.known[word]
	return known
}

func (l *Lexicon) add(words []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, word := range words {
		if strings.HasPrefix(word, outer) {
			continue
		}
		if _, known := l.known[word]; !known {
			l.known[word] = struct{}{}
			l.words = append(l.words, word)
			l.outlines = append(l.outlines, outlineOf(word))
		}
	}
}

// Prune removes all words but those of the given indexes, once there are far more.
func (l *Lexicon) Prune(parts []Part) {
	present := 0
	for _, p := range parts {
		present += len(p.Index.words)
	}
	l.mu.RLock()
	tooMany := len(l.words) > 2*present+50_000
	l.mu.RUnlock()
	if !tooMany {
		return
	}
	fresh := NewLexicon()
	for _, p := range parts {
		fresh.add(p.Index.words)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.words, l.outlines = fresh.known, fresh.words, fresh.outlines
}

// nearWord is a word similar to the one that was typed.
type nearWord struct {
	word  string
	edits int
}

// near finds the words within a few edits of the typed word or of its stem, nearest
// first.
func (l *Lexicon) near(word term) []nearWord {
	limit := editsAllowed(len(word.typed))
	if limit == 0 {
		return nil
	}
	typed, stem := outlineOf(word.typed), outlineOf(word.stem)
	var found []nearWord
	l.mu.RLock()
	for i, other := range l.outlines {
		if !other.near(typed, limit) && !other.near(stem, limit) {
			continue
		}
		if n := min(suggest.Distance(word.typed, l.words[i], limit), suggest.Distance(word.stem, l.words[i], limit)); n <= limit {
			found = append(found, nearWord{l.words[i], n})
		}
	}
	l.mu.RUnlock()
	slices.SortFunc(found, func(a, b nearWord) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.word, b.word))
	})
	return found
}

// mostRelated is how many words of the same meaning a word may have.
const mostRelated = 16

// outline is a summary for comparing words quickly: the set of their letters in the
// lower 56 bits, their length in the upper 8. Words that are d edits apart differ by at
// most d in length and in at most 2d letters, so most pairs are ruled out without
// comparing the words.
type outline uint64

const outlineBits = 56

func outlineOf(word string) outline {
	set := outline(min(len(word), 255)) << outlineBits
	for i := range len(word) {
		switch c := word[i]; {
		case c >= 'a' && c <= 'z':
			set |= 1 << (c - 'a')
		case c >= '0' && c <= '9':
			set |= 1 << (c - '0' + 26)
		default:
			set |= 1 << (c%20 + 36)
		}
	}
	return set
}

// near tells whether two words can be within limit edits of each other.
func (a outline) near(b outline, limit int) bool {
	gap := int(a>>outlineBits) - int(b>>outlineBits)
	return gap <= limit && -gap <= limit && bits.OnesCount64(uint64(a^b)<<8) <= 2*limit
}

// editsAllowed is how many typing mistakes a word of that length may contain
// and still be recognised.
func editsAllowed(length int) int {
	switch {
	case length < 4:
		return 0
	case length < 8:
		return 1
	default:
		return 2
	}
}
