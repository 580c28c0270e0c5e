package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/definition"
	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// field is a part of a definition that is searched. A word in a short, significant
// field weighs more than one in a long description.
type field struct {
	weight float32 // of one word in a field of ordinary length
	length float32 // how many words are ordinary
	slope  float32 // 0: length does not matter; 1: a field twice as long halves the weight
}

// The fields, by significance. Usual lengths are constants rather than averages of the
// indexed tools, so that the weight of a word does not depend on other tools and can be
// computed once.
var (
	fieldName      = field{weight: 5, length: 3, slope: 0.5}
	fieldSpace     = field{weight: 2, length: 1}
	fieldTitle     = field{weight: 2.5, length: 4, slope: 0.5}
	fieldText      = field{weight: 1, length: 25, slope: 0.7}
	fieldParam     = field{weight: 1.2, length: 6, slope: 0.6}
	fieldParamText = field{weight: 0.4, length: 40, slope: 0.7}
	fieldValues    = field{weight: 0.4, length: 8, slope: 0.7}
	fieldTags      = field{weight: 2, length: 3, slope: 0.5}
	fieldResult    = field{weight: 0.3, length: 10, slope: 0.7}
	fieldServer    = field{weight: 0.25, length: 20, slope: 0.7}
)

// saturation is BM25's k1: how soon repetitions of a word stop counting.
const saturation = float32(1.2)

// Limits of what is read of a tool and of its server, in bytes.
const (
	longestText   = 4096
	longestServer = 600
)

// Index is the searchable form of one namespace's tools: for every word the
// tools that contain it with the weight it has there. It is never changed.
type Index struct {
	words    []string         // sorted
	postings [][]posting      // of each word
	held     []int            // of each word: how many tools are about it
	names    []string         // per tool: its name, for comparing it as a whole
	titles   []titleWord      // words of all titles, tool by tool
	ends     []uint32         // per tool: where its words in titles end
	aged     []float32        // per tool: a factor of its scores, smaller if it is deprecated
	whole    []string         // per tool: its title, or else its name, for comparing it as a whole
	vectors  []meaning.Vector // per tool: what it means
	families []string         // what many of the tools are about
}

// posting is one tool that contains a word. weight is BM25's term weight with
// saturation, without the rarity of the word.
type posting struct {
	tool   uint32
	weight float32
}

// Context is what is known about the tools of a namespace beyond their definitions. The
// zero value is nothing.
type Context struct {
	Server string                  // what the server says about itself
	Fields func(tool.Ref) []string // names in the results of a tool without output schema; nil: unknown
}

// NewIndex reads the tools' definitions, which takes tens of microseconds each.
func NewIndex(tools []tool.Info, known Context) *Index {
	b := builder{ids: map[string]uint32{}, fields: known.Fields}
	b.server(known.Server)
	x := &Index{families: families(tools)}
	for i := range tools {
		b.tool(uint32(i), &tools[i])
		b.title(&tools[i])
		x.names = append(x.names, wholeText(tools[i].Name))
		x.ends = append(x.ends, uint32(len(b.titles)))
		x.aged = append(x.aged, agedOf(&tools[i]))
		x.whole = append(x.whole, wholeText(cmp.Or(tools[i].Title, tools[i].Name)))
		x.vectors = append(x.vectors, meantBy(&tools[i]))
	}
	x.words = slices.Sorted(maps.Keys(b.ids))
	x.postings, x.held = make([][]posting, len(x.words)), make([]int, len(x.words))
	places := make([]uint32, len(x.words))
	for i, word := range x.words {
		x.postings[i] = b.postings[b.ids[word]]
		if x.held[i] = b.held[b.ids[word]]; x.held[i] == 0 {
			x.held[i] = len(x.postings[i])
		}
		places[b.ids[word]] = uint32(i)
	}
	x.titles = b.titles
	for i := range x.titles {
		x.titles[i].word = places[x.titles[i].word]
	}
	return x
}

// builder collects postings word by word.
type builder struct {
	ids      map[string]uint32
	postings [][]posting
	weights  []float32 // of each word in the tool being read
	touched  []uint32  // words of the tool being read
	field    []uint32  // words of the field being read
	held     []int     // of each word: tools in which it is about the tool itself
	about    []uint32  // words of the server's text
	titles   []titleWord
	fields   func(tool.Ref) []string
}

func (b *builder) tool(n uint32, info *tool.Info) {
	b.text(fieldName, info.Name)
	b.space(info.Space)
	b.text(fieldTitle, info.Title)
	b.text(fieldText, cut(info.Description, longestText))
	b.text(fieldTags, definition.Tags(info))
	in := definition.ReadSchema(info.Input)
	b.texts(fieldParam, in.Names)
	b.texts(fieldParamText, in.Texts)
	inner := len(b.touched) // what follows is around the tool, and makes no word common
	b.texts(fieldValues, in.Values)
	b.texts(fieldResult, b.results(info))
	b.field = append(b.field, b.about...)
	b.close(fieldServer)
	for i, id := range b.touched {
		w := b.weights[id]
		if i < inner {
			b.held[id]++
		}
		b.postings[id] = append(b.postings[id], posting{n, w * (saturation + 1) / (saturation + w)})
		b.weights[id] = 0
	}
	b.touched = b.touched[:0]
}

func (b *builder) text(f field, text string) {
	words(text, func(word string) { b.field = append(b.field, b.id(stem(word))) })
	b.close(f)
}

// texts is text for several texts in one field.
func (b *builder) texts(f field, texts []string) {
	left := longestText
	for _, text := range texts {
		if left <= 0 {
			break
		}
		words(cut(text, left), func(word string) { b.field = append(b.field, b.id(stem(word))) })
		left -= len(text)
	}
	b.close(f)
}

// results are the names in the results of a tool.
func (b *builder) results(info *tool.Info) []string {
	switch {
	case len(info.Output) > 0:
		return definition.ReadSchema(info.Output).Names
	case b.fields != nil:
		return b.fields(info.Ref)
	}
	return nil
}

// server reads what the server says about itself: the words that say something, each
// once.
func (b *builder) server(text string) {
	words(cut(text, longestServer), func(word string) {
		if id := stem(word); !filler[word] && !vocabulary().common[word] && !vocabulary().verbs[id] {
			b.about = append(b.about, b.id(id))
		}
	})
	slices.Sort(b.about)
	b.about = slices.Compact(b.about)
}

// close weighs the words of the field, now that its length is known.
func (b *builder) close(f field) {
	weight := f.weight / (1 - f.slope + f.slope*float32(len(b.field))/f.length)
	for _, id := range b.field {
		b.add(id, weight)
	}
	b.field = b.field[:0]
}

func (b *builder) add(id uint32, weight float32) {
	if b.weights[id] == 0 {
		b.touched = append(b.touched, id)
	}
	b.weights[id] += weight
}

func (b *builder) id(word string) uint32 {
	id, known := b.ids[word]
	if !known {
		id = uint32(len(b.postings))
		b.ids[strings.Clone(word)] = id
		b.postings = append(b.postings, nil)
		b.held = append(b.held, 0)
		b.weights = append(b.weights, 0)
	}
	return id
}

func cut(text string, limit int) string {
	if len(text) > limit {
		return text[:limit]
	}
	return text
}

// space indexes the name of a namespace without its organisation, unless it is a word that
// says little, such as everything.
func (b *builder) space(namespace string) {
	name, _ := principal.SplitNamespace(namespace)
	words(name, func(word string) {
		if !vocabulary().common[word] && !filler[word] {
			b.field = append(b.field, b.id(stem(word)))
		}
	})
	b.close(fieldSpace)
}

func (x *Index) exact(word string) []int {
	if i, ok := slices.BinarySearch(x.words, word); ok {
		return []int{i}
	}
	return nil
}

// beginning matches the words that begin with prefix and are longer.
func (x *Index) beginning(prefix string) []int {
	var found []int
	i, exact := slices.BinarySearch(x.words, prefix)
	if exact {
		i++
	}
	for ; i < len(x.words) && strings.HasPrefix(x.words[i], prefix) && len(found) < mostExpansions; i++ {
		found = append(found, i)
	}
	return found
}

// misspelt matches the words that are so many typing mistakes away from a word or its stem, and
// begin with the same letter.
func (x *Index) misspelt(t term, edits int) (found []int) {
	i, _ := slices.BinarySearch(x.words, t.stem[:1])
	for ; i < len(x.words) && x.words[i][0] == t.stem[0] && len(found) < mostExpansions; i++ {
		word := x.words[i]
		if min(suggest.Distance(t.typed, word, edits), suggest.Distance(t.stem, word, edits)) == edits {
			found = append(found, i)
		}
	}
	return found
}

func (x *Index) holders(words []int) int {
	n := 0
	for _, word := range words {
		n += x.held[word]
	}
	return n
}

// longestWord bounds one indexed word, in bytes: longer ones are data, not words.
const longestWord = 48

// words splits text into lower-case words and calls emit for each: at everything that
// is neither letter nor digit, and where camelCase or an ACRONYMWord changes case.
// Scripts written without spaces give a word per character.
func words(text string, emit func(word string)) {
	start := -1 // where the word under way begins
	var before, last rune
	flush := func(end int) {
		if start >= 0 && end-start <= longestWord {
			emit(strings.ToLower(text[start:end]))
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
		case spaceless(r):
			flush(i)
			emit(string(r))
		case start < 0:
			start = i
		case unicode.IsUpper(r) && !unicode.IsUpper(last):
			flush(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
			turn := i - utf8.RuneLen(last)
			flush(turn)
			start = turn
		}
		before, last = last, r
	}
	flush(len(text))
}

// spaceless tells whether r belongs to a script that puts no spaces between words.
func spaceless(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// stem removes the most common endings of an English word: files and file, creating,
// created and creation, colour and color become one. The result need not be a word; it is
// the same for query and index.
func stem(word string) string {
	word = singular(word)
	for _, ending := range []string{"ing", "ed"} {
		if root, found := strings.CutSuffix(word, ending); found && len(root) >= 3 && strings.ContainsAny(root, "aeiouy") {
			word = undoubled(root)
			break
		}
	}
	if len(word) < 5 {
		return word
	}
	if len(word) >= 8 && strings.HasSuffix(word, "tion") {
		return word[:len(word)-3]
	}
	return strings.TrimSuffix(word, "e")
}

func singular(word string) string {
	n := len(word)
	switch {
	case n < 4 || word[n-1] != 's':
		return word
	case strings.HasSuffix(word, "ies"):
		return word[:n-3] + "y"
	case hasAnySuffix(word, "sses", "shes", "ches", "xes"):
		return word[:n-2]
	case hasAnySuffix(word, "ss", "us", "is"):
		return word
	default:
		return word[:n-1]
	}
}

// undoubled makes run of runn, from running.
func undoubled(root string) string {
	n := len(root)
	if root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
		return root[:n-1]
	}
	return root
}

func hasAnySuffix(word string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(word, s) {
			return true
		}
	}
	return false
}

// filler are the words of a question that say nothing about the tool.
var filler = wordSet(`a an and the to of for in on at by from with as or that this these those how do does did
	can could would should i me my we our you your it its is are was were be been am has have will what why
	some any something somebody someone tool want need please let us there here one into about s`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// EachWord calls emit for the words of a text as the search reads them, in lower case.
func EachWord(text string, emit func(word string)) { words(apostrophes.Replace(text), emit) }

var apostrophes = strings.NewReplacer("'", "", "’", "")

// IsFiller reports whether a word says nothing about a tool.
func IsFiller(word string) bool { return filler[word] }
