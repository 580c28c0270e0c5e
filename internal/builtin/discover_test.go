package builtin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/tools/tokencount"
)

func TestSearchTools(t *testing.T) {
	t.Parallel()
	h := open(t)
	var found searchtools.Found
	view := h.mustCall(t, "search_tools", `{"query":"read a file","namespace":"fs","limit":1}`, &found)
	if found.Total != 2 || len(found.Tools) != 1 || found.Tools[0].Name != "fs.read_file" || found.Tools[0].Signature != "(path: string, head?: integer)" {
		t.Errorf("found %+v", found)
	}
	var other searchtools.Found
	if view := h.mustCall(t, "search_tools", `{"query":"write a file","namespace":"fs","limit":1}`, &other); other.Tools[0].Script != `mcp.fs["write-file"]` || !strings.Contains(view.Text(), `, in scripts mcp.fs["write-file"]`) {
		t.Errorf("found %+v\n%s", other.Tools[0], view.Text())
	}
	if want := "1 of 2 matching tools:\nfs.read_file(path: string, head?: integer)\n  Does read file."; view.Text() != want {
		t.Errorf("text %q", view.Text())
	}
	h.mustCall(t, "search_tools", `{"query":"zzzzzz"}`, &found)
	if found.Tools == nil || len(found.Tools) != 0 {
		t.Errorf("found %+v", found)
	}
	if view, _ := h.call(t, "search_tools", `{"query":"x","namespace":"fss"}`); !strings.Contains(view.Text(), "did you mean fs?") {
		t.Errorf("unknown namespace: %s", view.Text())
	}
}

// TestSearchToolsSaysThatNothingFits asks in another language, and for what is no word.
func TestSearchToolsSaysThatNothingFits(t *testing.T) {
	t.Parallel()
	h := open(t)
	const foreign, weak, none = "Ask in their language", "These are the nearest", "No tool matches. Try other words; an empty query lists all."
	for _, c := range []struct {
		query string
		tools int
		notes []string
	}{
		{"addiere zwei Zahlen bitte", 0, []string{foreign, none}},
		{"zzzzzz", 0, []string{none}},
		{"weather history of Lisbon", 3, []string{weak}},
	} {
		var found searchtools.Found
		text := h.mustCall(t, "search_tools", fmt.Sprintf(`{"query":%q}`, c.query), &found).Text()
		for _, note := range []string{foreign, weak, none} {
			if strings.Contains(text, note) != slices.Contains(c.notes, note) {
				t.Errorf("%s: %q is or is not in\n%s", c.query, note, text)
			}
		}
		if len(found.Tools) != c.tools {
			t.Errorf("%s: %d tools, want %d:\n%s", c.query, len(found.Tools), c.tools, text)
		}
	}
}

// TestWeakResultsOfAFamily checks that the nearest tools of a family are shown although tools of
// other families are nearer.
func TestWeakResultsOfAFamily(t *testing.T) {
	t.Parallel()
	h := open(t)
	const query = "weather history of Lisbon"
	var all, jobs searchtools.Found
	h.mustCall(t, "search_tools", fmt.Sprintf(`{"query":%q, "namespace":"luanette"}`, query), &all)
	h.mustCall(t, "search_tools", fmt.Sprintf(`{"query":%q, "namespace":"jobs"}`, query), &jobs)
	if slices.ContainsFunc(all.Tools, func(f searchtools.FoundTool) bool { return f.Family == "jobs" }) {
		t.Fatalf("a job is among the nearest of all: %+v", all.Tools)
	}
	if len(jobs.Tools) == 0 || jobs.Note == "" {
		t.Errorf("found %+v", jobs)
	}
}

func TestSearchToolsMergesWordings(t *testing.T) {
	t.Parallel()
	h := open(t)
	var found searchtools.Found
	h.mustCall(t, "search_tools", `{"queries":["qqqq","cancel","cancel job"]}`, &found)
	if len(found.Tools) == 0 || len(found.Tools) > 8 || found.Tools[0].Name != "job_cancel" {
		t.Errorf("found %+v", found.Tools)
	}
	h.mustCall(t, "search_tools", `{"query":"cancel", "queries":["", "job"], "limit": 3}`, &found)
	if len(found.Tools) != 3 || found.Tools[0].Name != "job_cancel" {
		t.Errorf("found %+v", found.Tools)
	}
	if view, err := h.call(t, "search_tools", `{"queries":["1","2","3","4","5","6"]}`); err == nil {
		t.Errorf("six wordings: %s", view.Text())
	}
}

func TestSearchToolsTellsSiblingsApart(t *testing.T) {
	t.Parallel()
	h := open(t)
	var found searchtools.Found
	view := h.mustCall(t, "search_tools", `{"query":"file","namespace":"fs"}`, &found)
	if len(found.Tools) != 2 || found.Tools[0].Distinct+" "+found.Tools[1].Distinct != "read write" && found.Tools[0].Distinct+" "+found.Tools[1].Distinct != "write read" {
		t.Errorf("found %+v", found.Tools)
	}
	if !strings.Contains(view.Text(), "head?: integer) [read]\n") {
		t.Errorf("text %s", view.Text())
	}
	if len(found.Servers) != 1 || found.Servers[0].Name != "fs" || found.Servers[0].Matched != 2 {
		t.Errorf("servers %+v", found.Servers)
	}
}

// Eight tools with long descriptions must fit into 610 tokens.
func TestSearchToolsIsShort(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, query := range []string{"job", "session", "run a script in the background", "approve what a script does"} {
		var found searchtools.Found
		view := h.mustCall(t, "search_tools", fmt.Sprintf(`{"query":%q}`, query), &found)
		if n := tokencount.Estimate(view.Text()); len(found.Tools) != 8 || n > 610 {
			t.Errorf("%s: %d tools in %d tokens:\n%s", query, len(found.Tools), n, view.Text())
		}
	}
}

func TestGetToolDefinitions(t *testing.T) {
	t.Parallel()
	h := open(t)
	var got searchtools.Definitions
	view := h.mustCall(t, "get_tool_definitions",
		`{"names":["fs.read_file","fs__write-file","fs.raed_file","search_tools","nothing like it","fs.read_file"]}`, &got)
	var names []string
	for _, d := range got.Tools {
		names = append(names, d.Name+" "+d.LuaPath)
	}
	if want := []string{"fs.read_file mcp.fs.read_file", `fs.write-file mcp.fs["write-file"]`, "search_tools mcp.search_tools"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	if string(got.Tools[0].Annotations) != `{"readOnlyHint":true}` || !strings.Contains(string(got.Tools[0].Input), `"required":["path"]`) {
		t.Errorf("definition %s %s", got.Tools[0].Annotations, got.Tools[0].Input)
	}
	if len(got.Unknown) != 2 || !slices.Equal(got.Unknown[0].DidYouMean, []string{"fs.read_file"}) || got.Unknown[1].Name != "nothing like it" {
		t.Errorf("unknown %+v", got.Unknown)
	}
	if want := `await mcp.fs["write-file"]({…})`; got.Tools[1].Call != want || !strings.Contains(view.Text(), "in JavaScript: "+want+"\nin Lua: mcp.fs[\"write-file\"]{…}\n") {
		t.Errorf("the call is %s, in text %s", got.Tools[1].Call, view.Text())
	}
	if !strings.Contains(view.Text(), `no tool "fs.raed_file"; did you mean fs.read_file?`) {
		t.Errorf("text %s", view.Text())
	}
	many, _ := json.Marshal(map[string]any{"names": slices.Repeat([]string{"x"}, 101)})
	if _, err := h.call(t, "get_tool_definitions", string(many)); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("101 names: %v", err)
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, args := range []string{
		`{"name":"fs.read_file","arguments":{"path":"x","big":9007199254740993}}`,
		`{"name":"fs__read_file","arguments":{"path":"x","big":9007199254740993}}`,
		`{"name":"mcp.fs.read_file","arguments":"{\"path\":\"x\",\"big\":9007199254740993}"}`,
	} {
		result, err := h.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "call_tool"}, Args: json.RawMessage(args)})
		want := `{"content":[{"type":"text","text":"fs.read_file"}],"structuredContent":{"path":"x","big":9007199254740993},"x-unknown":9007199254740993}`
		if err != nil || string(result.Raw) != want {
			t.Errorf("%s: %s, %v", args, result.Raw, err)
		}
	}
	h.mustCall(t, "call_tool", `{"name":"fs.write-file","arguments":null}`, nil)
	for args, want := range map[string]string{
		`{"name":"fs.read_file","arguments":{}}`:              "path: required but missing",
		`{"name":"fs.read_file"}`:                             "path: required but missing",
		`{"name":"fs.raed_file"}`:                             "did you mean fs.read_file?",
		`{"name":"unknown.tool"}`:                             "namespaces: fs, music",
		`{"name":"call_tool","arguments":{"name":"zzz.zzz"}}`: "namespaces: fs, music",
	} {
		view, err := h.call(t, "call_tool", args)
		if err != nil || !view.IsError || !strings.Contains(view.Text(), want) {
			t.Errorf("%s: %v, %q, want %q", args, err, view.Text(), want)
		}
	}
}

// TestCallToolOfDisconnectedServer checks the error of a server that was added but
// has not listed its tools yet.
func TestCallToolOfDisconnectedServer(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.servers.unreachable["slow"] = "connecting"
	if err := h.servers.Add(t.Context(), "slow", upstream.Settings{}); err != nil {
		t.Fatal(err)
	}
	view, err := h.call(t, "call_tool", `{"name":"slow.anything"}`)
	if err != nil || !strings.Contains(view.Text(), "unavailable: call slow.anything: connecting") {
		t.Errorf("%v, %s", err, view.Text())
	}
}
