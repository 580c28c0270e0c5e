package terminal_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

func TestNavigation(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("─ Log 8 ")
	p.types("\t\t") // the pane with the calls
	p.waitFor("›12:00:06")
	p.types("\x1b[Z") // shift+tab
	p.waitFor("›nightly")
	p.types("\x1b[C") // right
	p.waitFor("›12:00:06")
	p.types("\x1b[D\x1b[B") // left, down
	p.waitFor("›import")
	p.types("2")
	p.waitFor("›search")
	p.types("G")
	p.waitFor("›db")
	p.types("k")
	p.waitFor("›files")
	p.types("g")
	p.waitFor("›search")
	p.types("\x1b[6~") // page down
	p.waitFor("›db")
	p.types("\x1b[5~") // page up
	p.waitFor("›search")
	p.types("j\r")
	p.waitFor("─ Servers › files 2 ")
	p.types("j\r")
	p.waitFor("─ Servers › files › write_file ")
	p.types("\x1b")
	p.waitFor("─ Servers › files 2 ")
	p.types("\x7f") // backspace
	p.waitFor("─ Servers 3 ")
	p.types("i")
	p.waitFor("─ Servers › files ─")
	p.types("\r")
	p.waitFor("─ Servers › files › files 2 ")
	p.types("qq")
	p.waitFor("─ Servers 3 ")
	p.types("q")
	p.waitEnd()
}

func TestCommands(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("─ Servers 3 ")
	for _, tt := range []struct{ command, sees string }{
		{":upstreams\r", "─ Servers 3 "},
		{":too\t\r", "─ Tools 3 "},
		{":tools fi\t\r", "─ Tools › files 2 "},
		{":tools none\r", "there is no server none; press 2 to list them"},
		{":ap\r", "─ Approvals 2 "},
		{":jobs\r", "─ Jobs 2 "},
		{":calls search\r", "─ Calls › search 1 "},
		{":traces\r", "─ Traces 2 "},
		{":traces all\r", "─ Traces 3 "},
		{":events\r", "─ Log 8 "},
		{":log files\r", "─ Log › files 2 "},
		{":nodes\r", "─ Nodes 0 "},
		{":stderr\r", "which server?"},
		{":stderr files\r", "Nothing written since"},
		{":help\r", "─ Nodes › stderr of files › Help "},
		{":nonsense\r", "there is no command :nonsense"},
		{":shell\r", "no REPL here: run `luanette repl --server http://127"},
		{":o\r", "─ Servers 3 ──"},
	} {
		p.types(tt.command)
		p.waitFor(tt.sees)
	}
	p.types(":jobs calls\x17\x17tr")
	p.waitFor(":tr▏  traces")
	p.types("\x15")
	p.waitFor(":▏  overview activity servers tools")
	p.types("\x1b")
	p.waitFor("? help")
	p.types(":x\x7f\x7f") // the second one closes the prompt
	p.waitFor("? help")
	p.types(":q\r")
	p.waitEnd()
}

func TestFilter(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("─ Servers 3 ")
	p.types("2/sezz\x7f\x7fa")
	p.waitFor("─ Servers 1 /sea ")
	p.types("\r")
	p.waitFor("? help")
	p.types("/zz")
	p.waitFor("no rows match seazz")
	p.types("\x1b")
	p.waitFor("─ Servers 3 ")
	p.types("/!sea\r")
	p.waitFor("─ Servers 2 /!sea ")
	p.types("\r")
	p.waitFor("─ Servers › files 2 ") // the first one that is left
	p.types("/write\r")
	p.waitFor("─ Servers › files 1 /write ")
	p.types("\x1b")
	p.waitFor("─ Servers › files 2 ─")
	p.types("\x1b")
	p.waitFor("─ Servers 2 /!sea ")
	p.types("?/wheel\r")
	p.waitFor("─ Servers › Help /wheel ")
	p.waitGone("Everywhere")
	p.types("/nothing like it\x1b[200~pasted\x1b[201~")
	p.waitFor("no lines match wheelnothing like itpasted")
}

func TestSort(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(120, 24)
	p.waitFor("─ Servers 3 ")
	p.types("2")
	p.waitOrder("search", "files", "db") // those with trouble first
	p.types("N")
	p.waitOrder("Name↑", "db", "files", "search")
	p.types("N")
	p.waitOrder("Name↓", "search", "files", "db")
	p.types("T")
	p.waitOrder("Tools↓", "files", "db", "search")
	p.types("T")
	p.waitOrder("Tools↑", "search", "db", "files")
	p.types("7D")
	p.waitOrder("Duration↓", "search.query", "files.read_file")
	p.types("D")
	p.waitOrder("Duration↑", "files.read_file", "search.query")
}

// click is a press and release of the left button at a place, from 1.
func click(x, y string) string { return "\x1b[<0;" + x + ";" + y + "M\x1b[<0;" + x + ";" + y + "m" }

func TestMouse(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	for _, text := range []string{"search  ", "page 42 of 100", "─ Calls 3 ", "─ Log 8 "} {
		p.waitFor(text)
	}
	p.types(click("5", "9")) // the first row of the jobs is in row 9
	p.waitFor("›nightly")
	p.types(click("5", "10"))
	p.waitFor("›import")
	p.types("\x1b[<65;5;15M") // wheel over the calls
	p.waitFor("›12:00:02")
	p.types(click("22", "2")) // a tab
	p.waitFor("›search")
	p.types(click("3", "4")) // the title of a column
	p.waitOrder("Name↑", "db", "files", "search")
	p.types(click("3", "6"))
	p.waitFor("›files")
	p.types(click("3", "6"))
	p.waitFor("─ Servers › files 2 ")
	p.types("?")
	p.waitFor("Everywhere")
	p.types("\x1b[<65;5;15M")
	p.waitGone("Everywhere")
	p.types("\x1b[<64;5;15M")
	p.waitFor("Everywhere")
}

func TestServerActions(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("tools_refresh", fault.New(fault.Unavailable, "search is unreachable"))
	s.answer("mcp_disconnect", map[string]any{"removed": true})
	p := s.open(80, 24)
	p.waitFor("›search")
	p.types("r")
	p.waitFor("search is unreachable")
	p.types("x")
	p.waitFor("Remove search? Its tools can no longer be called.  y yes  n no")
	p.types("n")
	p.waitFor("not done")
	p.types("x")
	p.waitFor("Remove search?")
	p.types("y")
	p.waitFor("search removed")
	p.types("t")
	p.waitFor("─ Overview › traces of search 1 ")
	p.types("\x1b")
	p.waitFor("─ Servers 3 ")
	p.types("a") // not a key of servers
	p.types("l")
	p.waitFor("A server with a URL has no standard error")
	for _, want := range []string{`tools_refresh {"namespace":"search"}`, `mcp_disconnect {"namespace":"search"}`} {
		if !s.wasCalled(want) {
			t.Errorf("%s was not called", want)
		}
	}
}

func TestJobActions(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("job_cancel", map[string]any{"cancelled": true})
	p := s.open(80, 24)
	p.waitFor("page 42 of 100")
	p.types("5c")
	p.waitFor("Cancel nightly? It stops after its current step.  y yes  n no")
	p.types("y")
	p.waitFor("nightly cancelled")
	p.types("t")
	p.waitFor("nightly has no trace yet")
	p.types("jc")
	p.waitFor("import is already failed")
	if !s.wasCalled(`job_cancel {"job_id":"job-2"}`) {
		t.Error("it was not cancelled")
	}
}

func TestTracesOfACallAndATool(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).withHistory().open(80, 24)
	p.waitFor("─ Log 8 ")
	p.types("6jt")
	p.waitFor("─ Calls › traces of search.query 1 ")
	p.types("3")
	p.waitFor("›files.read_file")
	p.types("t")
	p.waitFor("─ Tools › traces of files.read_file 1 ")
	p.types("\r")
	p.waitFor("mcp.tool = read_file")
}

// TestStandardError follows what a program writes, until the user scrolls up.
func TestStandardError(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	for i := range 40 {
		s.publish("upstream.stderr", map[string]any{"upstream": "files", "line": "line " + string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}
	p := s.open(80, 24)
	p.waitFor("─ Servers 3 ")
	p.types("2jl")
	p.waitFor("line nb")
	s.publish("upstream.stderr", map[string]any{"upstream": "files", "line": "the latest"})
	p.waitFor("the latest")
	p.types("k")
	p.waitGone("the latest")
	s.publish("upstream.stderr", map[string]any{"upstream": "files", "line": "while scrolled"})
	p.types("G")
	p.waitFor("while scrolled")
	p.types("8")
	p.waitFor("─ Log 0 ") // it is not in the log of all servers
	p.types(":log files\r")
	p.waitFor("─ Log › files 42 ")
	p.types("\r")
	p.waitFor("line=while scrolled")
	p.types("i")
	p.waitFor("http://files.example/mcp")
}

// TestManyTools loads the tools of each server, since all do not fit into one response,
// and asks the server for those that match a filter.
func TestManyTools(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	tools := func(names ...string) any {
		var all []any
		for _, name := range names {
			all = append(all, map[string]any{"name": name})
		}
		return map[string]any{"total": 500, "tools": all}
	}
	s.answer("search_tools", func(args string) any {
		switch {
		case strings.Contains(args, `"query":"rare"`):
			return tools("files.rare", "files.read")
		case strings.Contains(args, `"namespace":"files"`):
			return tools("files.read", "files.write")
		case strings.Contains(args, `"namespace":"db"`):
			return tools("db.query")
		case strings.Contains(args, `"namespace"`):
			return tools()
		}
		return tools("files.read")
	})
	p := s.open(80, 24)
	p.waitFor("live")
	p.types("3")
	p.waitFor("─ Tools 3 ")
	p.types("/rare")
	p.waitFor("no rows match rare")
	p.types("\r")
	p.waitFor("›files.rare")
	p.types("\x1b")
	p.waitFor("─ Tools 4 ")
}

// TestServerOfTheTools acts on the server whose tools are shown, also if there are none.
func TestServerOfTheTools(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.answer("tools_refresh", map[string]any{})
	s.answer("search_tools", map[string]any{"tools": []any{}})
	p := s.open(80, 24)
	p.waitFor("›search")
	p.types("2\rr")
	p.waitFor("search connected, tools refreshed")
	p.types("l")
	p.waitFor("─ Servers › search › stderr of search ")
	p.types("qi")
	p.waitFor("next try")
	p.types("qt")
	p.waitFor("there is no row for t (traces)")
}
