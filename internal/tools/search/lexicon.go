package search

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

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
		if n := min(editDistance(word.typed, l.words[i], limit), editDistance(word.stem, l.words[i], limit)); n <= limit {
			found = append(found, nearWord{l.words[i], n})
		}
	}
	l.mu.RUnlock()
	slices.SortFunc(found, func(a, b nearWord) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.word, b.word))
	})
	return found
}
