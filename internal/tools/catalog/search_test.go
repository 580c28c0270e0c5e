package catalog_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// library is a source of definitions one can search.
func library(defs ...[4]string) *memory {
	m := newMemory()
	for _, d := range defs {
		m.with(d[0], d[1], d[3], nil)
		for i := range m.tools {
			if m.tools[i].Ref == ref(d[0], d[1]) {
				m.tools[i].Description = d[2]
			}
		}
	}
	return m
}

var searchedTools = [][4]string{
	{"fs", "read_file", "Read the complete contents of a file.", `{"properties":{"path":{"type":"string","description":"where it lies"}}}`},
	{"fs", "read_media_file", "Read an image or audio file as base64.", ""},
	{"fs", "write_file", "Create or overwrite a file.", ""},
	{"fs", "list_directory", "List all entries of a folder.", ""},
	{"github", "createIssue", "Open a new issue in a repository.", `{"properties":{"repository":{"type":"string"},"labels":{"type":"array","items":{"properties":{"colour":{"description":"hexadecimal"}}}}}}`},
	{"github", "search_repositories", "Find repositories by name.", ""},
	{"github", "HTTPProxy", "Forward things.", ""},
	{"music", "orpheus_generate", "Generate a MIDI sequence with a model.", ""},
	{"music", "convert_midi_to_wav", "Render MIDI with a soundfont.", ""},
	{"jp", "天気", "東京の天気を調べる", ""},
	{"", "search_tools", "Find tools by what they do.", ""},
}

func TestSearch(t *testing.T) {
	t.Parallel()
	c := open(catalog.Options{}, library(searchedTools...))
	tests := []struct {
		query, space string
		want         []string // the first hits
	}{
		{"read_file", "", []string{"fs.read_file", "fs.read_media_file"}},
		{"readFile", "", []string{"fs.read_file"}},
		{"readfile", "", []string{"fs.read_file"}},
		{"reading files", "fs", []string{"fs.read_file"}},
		{"create issue", "", []string{"github.createIssue"}},
		{"how do I open a new issue", "", []string{"github.createIssue"}},
		{"repository", "", []string{"github.search_repositories", "github.createIssue"}},
		{"colour", "", []string{"github.createIssue"}},
		{"hexadecimal", "", []string{"github.createIssue"}},
		{"http proxy", "", []string{"github.HTTPProxy"}},
		{"midi", "", []string{"music.convert_midi_to_wav", "music.orpheus_generate"}},
		{"render midi wav", "", []string{"music.convert_midi_to_wav"}},
		{"orphues", "", []string{"music.orpheus_generate"}},       // swapped
		{"directry", "", []string{"fs.list_directory"}},           // dropped
		{"genrrate midi", "", []string{"music.orpheus_generate"}}, // replaced
		{"gen", "", []string{"music.orpheus_generate"}},           // the beginning
		{"music", "", []string{"music.convert_midi_to_wav", "music.orpheus_generate"}},
		{"find", "github", []string{"github.search_repositories"}},
		{"天気", "", []string{"jp.天気"}},
		{"zzzzqqq", "", nil},
		{"read", "music", nil},
		{"read", "nowhere", nil},
	}
	for _, tt := range tests {
		t.Run(tt.query+" "+tt.space, func(t *testing.T) {
			t.Parallel()
			hits, total := c.Search(t.Context(), catalog.Query{Text: tt.query, Namespace: tt.space})
			got := hitNames(hits)
			if len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) || tt.want == nil && len(got) > 0 {
				t.Errorf("found %v, want %v first", got, tt.want)
			}
			if total < len(hits) {
				t.Errorf("total %d with %d hits", total, len(hits))
			}
		})
	}
}

func hitNames(hits []catalog.Hit) []string {
	all := make([]string, len(hits))
	for i, h := range hits {
		all[i] = h.Ref.String()
	}
	return all
}

func TestSearchWithoutWordsListsEverything(t *testing.T) {
	t.Parallel()
	c := open(catalog.Options{}, library(searchedTools...))
	hits, total := c.Search(t.Context(), catalog.Query{Text: " ?! ", Limit: 3})
	if got := hitNames(hits); total != len(searchedTools) || !slices.Equal(got, []string{"search_tools", "fs.list_directory", "fs.read_file"}) {
		t.Errorf("%v of %d", got, total)
	}
}

func TestSearchSeesChanges(t *testing.T) {
	t.Parallel()
	m := library(searchedTools...)
	c := open(catalog.Options{}, m)
	if hits, _ := c.Search(t.Context(), catalog.Query{Text: "telescope"}); len(hits) != 0 {
		t.Fatalf("found %v", hitNames(hits))
	}
	m.with("sky", "aim_telescope", "", nil)
	if hits, _ := c.Search(t.Context(), catalog.Query{Text: "telescope"}); len(hits) != 1 {
		t.Error("the new tool is not found")
	}
	m.without(ref("sky", "aim_telescope"))
	if hits, _ := c.Search(t.Context(), catalog.Query{Text: "telescope"}); len(hits) != 0 {
		t.Error("the removed tool is found")
	}
}

func FuzzSearch(f *testing.F) {
	c := open(catalog.Options{}, library(searchedTools...))
	for _, q := range []string{"read file", "", "\xff\xfe", "ĲŁı", strings.Repeat("a", 1000), "天気 midi", "generate_midi.toWAV"} {
		f.Add(q, "fs", 3)
	}
	f.Fuzz(func(t *testing.T, query, space string, limit int) {
		q := catalog.Query{Text: query, Namespace: space, Limit: limit}
		hits, total := c.Search(t.Context(), q)
		again, _ := c.Search(t.Context(), q)
		if limit > 0 && len(hits) > limit || total < len(hits) || !slices.Equal(hitNames(hits), hitNames(again)) {
			t.Fatalf("%d hits of %d, then %d", len(hits), total, len(again))
		}
		if !slices.IsSortedFunc(hits, func(a, b catalog.Hit) int {
			if a.Score > b.Score {
				return -1
			}
			return 0
		}) {
			t.Fatal("hits are not in order")
		}
		for _, h := range hits {
			if space != "" && h.Space != space {
				t.Fatalf("found %v in %q", h.Ref, space)
			}
		}
	})
}

// manyTools makes n tools like real ones, spread over some namespaces.
func manyTools(n, spaces int) *memory {
	verbs := strings.Fields("get list create update delete search read write convert render analyze merge split export import query run stop start watch")
	nouns := strings.Fields("file issue repository message user channel calendar event invoice table row document image track sequence model job artifact session metric alert page comment branch")
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	m := newMemory()
	for i := range n {
		verb, noun, other := pick(verbs), pick(nouns), pick(nouns)
		var text strings.Builder
		fmt.Fprintf(&text, "%s a %s of the %s.", verb, noun, other)
		for range 30 {
			fmt.Fprintf(&text, " %s%d %s", pick(nouns), random.IntN(400), pick(verbs))
		}
		schema := fmt.Sprintf(`{"type":"object","properties":{"%s_id":{"type":"string","description":"which %s to %s"},"limit":{"type":"integer","description":"how many at most"}},"required":["%s_id"]}`, noun, noun, verb, noun)
		m.tools = append(m.tools, tool.Info{
			Ref:         ref(fmt.Sprintf("space%03d", i%spaces), fmt.Sprintf("%s_%s_%s_%d", verb, noun, other, i)),
			Description: text.String(), Input: json.RawMessage(schema),
		})
		m.answers[m.tools[i].Ref] = echo
	}
	return m
}

func BenchmarkSearch(b *testing.B) {
	for _, spaces := range []int{1, 100} {
		c := open(catalog.Options{}, manyTools(10_000, spaces))
		c.Search(b.Context(), catalog.Query{Text: "warm up"})
		for _, query := range []string{"invoice", "create a calendar event for a user", "anlyze artefact", "search repositories by na"} {
			b.Run(fmt.Sprintf("spaces=%d/%s", spaces, strings.ReplaceAll(query, " ", "_")), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.Search(b.Context(), catalog.Query{Text: query})
				}
			})
		}
	}
}

// The cost of finding that nothing has changed, with a source that builds its
// list anew each time.
func BenchmarkUnchanged(b *testing.B) {
	for name, source := range map[string]tool.Source{
		"shared": manyTools(10_000, 100), "copied": forgetful{manyTools(10_000, 100)},
	} {
		b.Run(name, func(b *testing.B) {
			c := open(catalog.Options{}, source)
			for b.Loop() {
				c.Refresh(b.Context())
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	m := manyTools(10_000, 100)
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			open(catalog.Options{}, m).Search(b.Context(), catalog.Query{Text: "file"})
		}
	})
	b.Run("one_namespace_changed", func(b *testing.B) {
		c := open(catalog.Options{}, m)
		c.Search(b.Context(), catalog.Query{Text: "file"})
		for i := 0; b.Loop(); i++ {
			m.tools = slices.Clone(m.tools)
			m.tools[0].Description = fmt.Sprint("now ", i)
			c.Search(b.Context(), catalog.Query{Text: "file"})
		}
	})
}

// The cost of noticing that one of many tools has changed.
func BenchmarkRefresh(b *testing.B) {
	m := manyTools(10_000, 50)
	slices.SortFunc(m.tools, func(a, b tool.Info) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	for i := range m.tools {
		info := &m.tools[i]
		info.Raw = json.RawMessage(fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, info.Name, info.Description, info.Input))
	}
	exposures := map[string]catalog.Exposure{"exposed=none": {}, "exposed=all": {All: true}}
	for name, exposure := range exposures {
		b.Run(name, func(b *testing.B) {
			c := open(catalog.Options{}, m)
			for i := range 50 {
				c.Expose(fmt.Sprintf("space%03d", i), exposure)
			}
			c.Refresh(b.Context())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.tools = slices.Clone(m.tools)
				m.tools[0].Description = fmt.Sprint("now ", i)
				c.Refresh(b.Context())
			}
		})
	}
}
