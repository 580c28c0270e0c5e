package search

import (
	"cmp"
	_ "embed"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// Factors of a match with other words than those of the query, by how sure it is that they
// mean the same.
const (
	factorPhrase   = float32(0.8)
	factorEveryday = float32(0.65)
	factorRelated  = float32(0.55)
	factorWordNet  = float32(0.35)
)

// The data: how people say what tools do, synonyms made by tools/wordlist, and words that
// say little.
var (
	//go:embed data/everyday.txt
	everydayText string
	//go:embed data/wordnet.txt
	wordnetText string
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
	split bool     // other words may stand before the last one, as in "throw it away"
	means []alternative
}

// words of English that the search knows.
type knownWords struct {
	irregular map[string]string        // form of a word: the word
	single    map[string][]alternative // by stem
	phrases   map[string][]phrase      // by the stem of the first word, longest first
	common    map[string]bool          // as they are typed
	verbs     map[string]bool          // stems of what tools do
	nouns     map[string]bool          // and of what they do it with
}

// vocabulary reads the data once.
var vocabulary = sync.OnceValue(func() *knownWords {
	v := &knownWords{
		irregular: map[string]string{}, single: map[string][]alternative{}, phrases: map[string][]phrase{},
		common: map[string]bool{}, verbs: map[string]bool{}, nouns: map[string]bool{},
	}
	for line := range dataLines(wordnetText) {
		if form, word, ok := strings.Cut(line, " < "); ok {
			v.irregular[form] = word
		}
	}
	for line := range dataLines(commonText) {
		maps.Copy(v.common, wordSet(line))
	}
	for line := range dataLines(toolWordsText) {
		v.addWords(line, "verbs: ", v.verbs)
		v.addWords(line, "nouns: ", v.nouns)
	}
	v.meanings(everydayText, factorEveryday)
	for _, line := range thesaurus {
		for word := range strings.FieldsSeq(line) {
			v.means(word, line, factorRelated)
		}
	}
	v.meanings(wordnetText, factorWordNet)
	for _, list := range v.phrases {
		slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return v
})

// addWords reads a line "verbs: word word".
func (v *knownWords) addWords(line, kind string, to map[string]bool) {
	if list, ok := strings.CutPrefix(line, kind); ok {
		for word := range strings.FieldsSeq(list) {
			to[v.stem(word)] = true
		}
	}
}

// stem is as the function, which needs a complete vocabulary.
func (v *knownWords) stem(word string) string {
	if base, ok := v.irregular[word]; ok {
		word = base
	}
	return regularStem(word)
}

// meanings reads lines "phrase / phrase > word word".
func (v *knownWords) meanings(text string, factor float32) {
	for line := range dataLines(text) {
		if phrases, meaning, ok := strings.Cut(line, " > "); ok {
			for one := range strings.SplitSeq(phrases, " / ") {
				v.means(one, meaning, factor)
			}
		}
	}
}

// means adds what a word or a phrase means.
func (v *knownWords) means(text, meaning string, factor float32) {
	var stems []string
	for word := range strings.FieldsSeq(text) {
		stems = append(stems, v.stem(word))
	}
	if len(stems) > 1 && factor > factorWordNet {
		factor = factorPhrase
	}
	var means []alternative
	for word := range strings.FieldsSeq(meaning) {
		if s := v.stem(word); s != stems[0] || len(stems) > 1 {
			means = append(means, alternative{s, factor})
		}
	}
	if len(stems) == 1 {
		v.single[stems[0]] = addAlternatives(v.single[stems[0]], means)
		return
	}
	last := stems[len(stems)-1]
	v.phrases[stems[0]] = append(v.phrases[stems[0]], phrase{stems, len(stems) == 2 && particles[last], means})
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

// particles make another verb of the one before.
var particles = wordSet("out away off up down back on in into onto over together aside forward apart")

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

// Limits of synonyms.
const (
	mostRelated    = 16
	mostLearned    = 4   // of them, learned in one namespace
	learnedAtOnce  = 512 // words of a namespace that have any
	shortParamText = 4   // words that explain a parameter's name rather than its use
)

// thesaurus holds words that mean the same when they are about tools, one group per
// line.
var thesaurus = []string{
	"create make new add start open generate insert",
	"delete remove erase drop destroy trash discard",
	"update change edit modify set alter patch adjust",
	"list show display enumerate view see",
	"get read fetch retrieve load",
	"show view get retrieve",
	"search find lookup query locate",
	"send post deliver notify",
	"stop end halt terminate kill cancel",
	"run execute invoke call trigger",
	"start launch begin boot",
	"pause mute silence",
	"copy duplicate clone fork",
	"move transfer relocate rename",
	"merge join combine unite",
	"undo revert rollback reset restore unstage",
	"reschedule move postpone",
	"answer reply respond",
	"give assign grant",
	"remember store save keep write",
	"mail email message",
	"message text sms",
	"picture image photo screenshot snapshot",
	"video movie clip",
	"song track music",
	"folder directory",
	"repository repo project",
	"database db",
	"document doc file",
	"issue ticket bug error",
	"pr pull request merge",
	"appointment meeting event",
	"person user member people contact",
	"customer client buyer",
	"money payment refund",
	"discount voucher coupon",
	"build pipeline workflow ci job",
	"failed error broken",
	"log output console",
	"internet web online",
	"site website page",
	"sheet spreadsheet",
	"slide presentation deck",
	"machine instance server vm",
	"permission access",
	"comment note remark",
	"label tag",
	"deadline due",
	"todo task",
	"volume loud louder quieter",
	"warm warmer cold heat heating temperature thermostat",
	"rain weather forecast",
	"way route direction",
	"nearby near local",
	"free busy available",
	"history past previous version revision",
	"cost price spend bill",
	"size big large",
	"schedule later tomorrow",
	"block lock",
	"sum aggregate group total",
	"shell terminal command",
	"language translate",
}

// related are the words that mean about the same as a word of the query: by the
// vocabulary, and by how servers name and describe their parameters.
func (s *search) related(t term) []alternative {
	found := t.means[:min(len(t.means), mostRelated)]
	if t.stem == "" {
		return found
	}
	for _, p := range s.parts {
		for _, other := range p.Index.related[t.stem] {
			if len(found) >= mostRelated {
				return found
			}
			found = addAlternatives(found[:len(found):len(found)], []alternative{{other, factorRelated}})
		}
	}
	return found
}

// relate learns synonyms from a parameter: a name that abbreviates a word of its
// description, as repo does repository, and a name that its description only rephrases.
func (b *builder) relate(name, description string) {
	var names, texts []string
	words(name, func(word string) { names = append(names, stem(word)) })
	words(cut(description, longestText), func(word string) {
		if !filler[word] && len(texts) < 2*shortParamText {
			texts = append(texts, stem(word))
		}
	})
	for _, one := range names {
		for _, other := range texts {
			if abbreviates(one, other) || len(names) == 1 && len(texts) <= shortParamText {
				b.pair(one, other)
				b.pair(other, one)
			}
		}
	}
}

// abbreviates tells whether a word is short for another: its beginning, or some of its
// letters in order, starting with the first.
func abbreviates(short, long string) bool {
	if len(short) < 2 || len(long) < len(short)+2 || short[0] != long[0] {
		return false
	}
	if strings.HasPrefix(long, short) {
		return len(short) >= 3 || len(long) >= 6
	}
	if len(short) > 4 || strings.ContainsAny(short[1:], "aeiou") {
		return false
	}
	at := 0
	for i := range len(short) {
		next := strings.IndexByte(long[at:], short[i])
		if next < 0 {
			return false
		}
		at += next + 1
	}
	return true
}

func (b *builder) pair(one, other string) {
	have := b.related[one]
	if one == other || len(have) >= mostLearned || have == nil && len(b.related) >= learnedAtOnce || slices.Contains(have, other) ||
		filler[one] || filler[other] || generic[one] || generic[other] {
		return
	}
	b.related[strings.Clone(one)] = append(have, strings.Clone(other))
}

// generic are words that are too common in parameters to distinguish tools.
var generic = map[string]bool{"id": true, "name": true, "key": true, "valu": true, "type": true, "path": true, "text": true, "number": true}

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

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours
// between two words, or limit+1 when there are more than limit.
func editDistance(a, b string, limit int) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > limit || len(a) > longestWord {
		return limit + 1
	}
	var rows [3][longestWord + 1]uint8
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		for j := 1; j <= len(b); j++ {
			cost := last[j-1]
			if a[i-1] != b[j-1] {
				cost = min(cost, last[j], row[j-1]) + 1
			}
			if swapped(a[:i], b[:j]) {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
		}
		if int(slices.Min(row[:len(b)+1])) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(int(last[len(b)]), limit+1)
}

// swapped tells whether two words end with the same two letters in another order.
func swapped(a, b string) bool {
	i, j := len(a), len(b)
	return i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1]
}
