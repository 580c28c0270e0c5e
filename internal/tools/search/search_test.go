package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// partOf makes tools "space.name: description" and their index.
func partOf(l *Lexicon, lines ...string) Part {
	var tools []tool.Info
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ": ")
		space, name, _ := strings.Cut(name, ".")
		tools = append(tools, tool.Info{Ref: tool.Ref{Space: space, Name: name}, Description: text})
	}
	x := NewIndex(tools, Context{})
	l.Add(x)
	return Part{Tools: tools, Index: x}
}

func found(r Result) []string {
	var names []string
	for _, h := range r.Hits {
		names = append(names, h.Ref.String())
	}
	return names
}

var sample = []string{
	"fs.delete_file: Delete a file.", "fs.get_file_info: Get details about a file.", "fs.read_file: Read the contents of a file.",
	"fs.write_file: Write text to a file.", "fs.list_directory: List a directory.", "fs.search_files: Search for files by pattern.",
	"math.add: Adds two numbers.", "math.list_numbers: Lists the numbers that were stored.", "math.two_factor: Two factor code.",
	"memory.create_entities: Create entities in the knowledge graph.", "memory.add_observations: Add observations to entities.",
	"browser.navigate: Open a page in the browser.", "browser.click: Click an element.",
	"git.create_pull_request: Create a pull request.", "git.list_repositories: List repositories.",
	"kube.list_pods: List Kubernetes pods.", "excel.read_sheet: Read a sheet of an Excel workbook.",
	"ppt.create_presentation: Create a presentation.", "stocks.get_prices: Get historical stock prices.", "paint.set_color: Set the color of the brush.",
}

func TestEverydayWordsFindTools(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	parts := []Part{partOf(l, sample...)}
	for query, want := range map[string]string{
		"add two numbers":                       "math.add",
		"get rid of the report":                 "fs.delete_file",
		"throw it away":                         "fs.delete_file",
		"bin that file":                         "fs.delete_file",
		"take me to example":                    "browser.navigate",
		"remember that Anna is at the bakery":   "memory.add_observations memory.create_entities",
		"open a PR":                             "git.create_pull_request",
		"which repos do I have":                 "git.list_repositories",
		"k8s":                                   "kube.list_pods",
		"jot it down in a file":                 "fs.write_file",
		"change the colour":                     "paint.set_color",
		"who wrote into the files, look for it": "fs.search_files",
	} {
		got := found(Run(Query{Texts: []string{query}}, parts, l))
		if len(got) == 0 || !slices.Contains(strings.Fields(want), got[0]) {
			t.Errorf("%s: found %v, want %s first", query, got, want)
		}
	}
}

// TestSavingToATextFileIsWriting checks that what is saved under a path of a text file is
// written as a file, unlike other documents.
func TestSavingToATextFileIsWriting(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	parts := []Part{partOf(l, append(sample, "ppt.save_presentation: Save a presentation to a file.", "browser.save_as_pdf: Save the page as a PDF file.")...)}
	for query, want := range map[string]string{
		"Save it to /tmp/notes/today.md":           "fs.write_file",
		"a report about it, saved at out/data.csv": "fs.write_file",
		"Save it as /tmp/talk.pptx":                "ppt.save_presentation",
		"Save the page":                            "browser.save_as_pdf",
	} {
		if got := found(Run(Query{Texts: []string{query}}, parts, l)); len(got) == 0 || got[0] != want {
			t.Errorf("%s: found %v, want %s first", query, got, want)
		}
	}
}

func TestDataOfATaskIsNotSearched(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`write "delete all files" there`:    "write   there",
		"read /root/excel/people_data.xlsx": "read  file excel ",
		"\"quoted\"":                        "\"quoted\"",
		"yes and/or no":                     "yes and/or no",
		"see https://www.youtube.com/w?v=1": "see  url youtube.com ",
		"note (not this) [nor this] here":   "note     here",
		"look at notes.md":                  "look at  file markdown ",
	} {
		if got := withoutData(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWordingsAreMerged(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	parts := []Part{partOf(l, sample...)}
	r := Run(Query{Texts: []string{"qqqq zzzz", "presentation", "create slides"}}, parts, l)
	if got := found(r); len(got) == 0 || got[0] != "ppt.create_presentation" {
		t.Errorf("found %v", got)
	}
	// What two wordings agree on comes before what one wants.
	r = Run(Query{Texts: []string{"sheet", "excel workbook", "stock"}}, parts, l)
	if got := found(r); len(got) < 2 || got[0] != "excel.read_sheet" || got[1] != "stocks.get_prices" {
		t.Errorf("found %v", got)
	}
	many := append(slices.Repeat([]string{"nothing"}, MostTexts), "presentation")
	if got := found(Run(Query{Texts: many}, parts, l)); slices.Contains(got, "ppt.create_presentation") {
		t.Errorf("more than %d wordings count: %v", MostTexts, got)
	}
}

func TestSpecialToolsNeedSpecificWords(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	own := partOf(l, ".job_list: List the jobs and show their state.", ".session_create: Create a session.")
	own.Special = true
	parts := []Part{own, partOf(l, "shop.list_orders: List what was ordered by customers since the shop was opened.")}
	if got := found(Run(Query{Texts: []string{"list"}}, parts, l)); !slices.Equal(got, []string{"shop.list_orders"}) {
		t.Errorf("list: found %v", got)
	}
	if got := found(Run(Query{Texts: []string{"list jobs"}}, parts, l)); got[0] != "job_list" {
		t.Errorf("list jobs: found %v", got)
	}
}

func TestNameOfAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	l := NewLexicon()
	parts := []Part{partOf(l, "everything.echo: Echoes a message.", "cache.flush: Delete everything.")}
	if got := found(Run(Query{Texts: []string{"everything"}}, parts, l)); !slices.Equal(got, []string{"cache.flush"}) {
		t.Errorf("found %v", got)
	}
}
