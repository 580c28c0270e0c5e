package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// partOf makes tools "space.name: description" and their index.
func partOf(lines ...string) Part {
	var tools []tool.Info
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ": ")
		space, name, _ := strings.Cut(name, ".")
		tools = append(tools, tool.Info{Ref: tool.Ref{Space: space, Name: name}, Description: text})
	}
	x := NewIndex(tools, Context{})
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
	parts := []Part{partOf(sample...)}
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
		got := found(Run(Query{Texts: []string{query}}, parts))
		if len(got) == 0 || !slices.Contains(strings.Fields(want), got[0]) {
			t.Errorf("%s: found %v, want %s first", query, got, want)
		}
	}
}

func TestOfPathsAndAddressesTheKindIsSearched(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"read /root/excel/people_data.xlsx": "read  file excel ",
		"yes and/or no":                     "yes and/or no",
		"see https://www.youtube.com/w?v=1": "see  url youtube.com ",
		"post to http://localhost":          "post to  url localhost ",
		"look at notes.md":                  "look at  file markdown ",
	} {
		if got := withKinds(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWordingsAreMerged(t *testing.T) {
	t.Parallel()
	parts := []Part{partOf(sample...)}
	r := Run(Query{Texts: []string{"qqqq zzzz", "presentation", "create slides"}}, parts)
	if got := found(r); len(got) == 0 || got[0] != "ppt.create_presentation" {
		t.Errorf("found %v", got)
	}
	// What two wordings agree on comes before what one wants.
	r = Run(Query{Texts: []string{"sheet", "excel workbook", "stock"}}, parts)
	if got := found(r); len(got) < 2 || got[0] != "excel.read_sheet" || got[1] != "stocks.get_prices" {
		t.Errorf("found %v", got)
	}
	many := append(slices.Repeat([]string{"nothing"}, MostTexts), "presentation")
	if got := found(Run(Query{Texts: many}, parts)); slices.Contains(got, "ppt.create_presentation") {
		t.Errorf("more than %d wordings count: %v", MostTexts, got)
	}
}

func TestSpecialToolsNeedSpecificWords(t *testing.T) {
	t.Parallel()
	own := partOf(".job_list: List the jobs and show their state.", ".session_create: Create a session.")
	own.Special = true
	parts := []Part{own, partOf("shop.list_orders: List what was ordered by customers since the shop was opened.")}
	if got := found(Run(Query{Texts: []string{"list"}}, parts)); !slices.Equal(got, []string{"shop.list_orders"}) {
		t.Errorf("list: found %v", got)
	}
	if got := found(Run(Query{Texts: []string{"list jobs"}}, parts)); got[0] != "job_list" {
		t.Errorf("list jobs: found %v", got)
	}
}

func TestQuestionsInOtherLanguages(t *testing.T) {
	t.Parallel()
	parts := []Part{partOf(sample...)}
	for query, want := range map[string]bool{
		"zeige mir das Wetter von morgen in Berlin bitte": true,
		"muéstrame el tiempo de mañana en Madrid":         true,
		"montre moi la météo de demain à Paris":           true,
		"покажи погоду на завтра":                         true,
		"book a table for two in Los Angeles":             false,
		"who won the game last night":                     false,
		"zzzz":                                            false,
	} {
		if r := Run(Query{Texts: []string{query}}, parts); r.Foreign != want {
			t.Errorf("%s: foreign is %v, weak %v, found %v", query, r.Foreign, r.Weak, found(r))
		}
	}
}

// TestNumbersAreValues checks that a number of a question finds no name that has it.
func TestNumbersAreValues(t *testing.T) {
	t.Parallel()
	for _, calculator := range []string{"math.product: Multiplication of numbers.", "math.calculate: Evaluates the given expression."} {
		parts := []Part{partOf(append(sample, "cars.rental_3_find: Find cars.", "buses_3.buy_bus_ticket: Buy tickets.", calculator)...)}
		got := found(Run(Query{Texts: []string{"multiplication of 3 and 2"}}, parts))
		if want, _, _ := strings.Cut(calculator, ":"); len(got) == 0 || got[0] != want || slices.Contains(got, "cars.rental_3_find") {
			t.Errorf("found %v, want %s", got, want)
		}
	}
}

func TestNameOfAServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	parts := []Part{partOf("everything.echo: Echoes a message.", "cache.flush: Delete everything.")}
	if got := found(Run(Query{Texts: []string{"everything"}}, parts)); !slices.Equal(got, []string{"cache.flush"}) {
		t.Errorf("found %v", got)
	}
}
