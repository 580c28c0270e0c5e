package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/scripting/script"
)

func TestIncomplete(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"x":                             false,
		"x = ":                          true,
		"x = 1":                         false,
		"function f()":                  true,
		"function f()\nend":             false,
		"if x then":                     true,
		"f(1,":                          true,
		"s = [[one":                     true,
		"x = = 1":                       false, // more input does not make it valid
		"return 'a":                     false,
		"for i = 1, 2 do print(i) end":  false,
		"t = {\n  a = 1,":               true,
		"-- only a remark":              false,
		"local x <const> = 1 return x,": true,
	} {
		if got := incompleteLua(code); got != want {
			t.Errorf("incomplete(%q) = %v", code, got)
		}
	}
}

func TestContinuing(t *testing.T) {
	t.Parallel()
	paths := []string{"mcp.call_tool", "mcp.fs.read_file", `mcp.fs["write-file"]`, "mcp.fs.remove", "mcp.git.log"}
	for word, want := range map[string][]string{
		"mcp.":         {"mcp.call_tool", "mcp.fs", "mcp.git"},
		"mcp.f":        {"mcp.fs"},
		"mcp.fs.":      {"mcp.fs.read_file", "mcp.fs.remove"},
		"mcp.fs.rem":   {"mcp.fs.remove"},
		"mcp.nowhere.": nil,
	} {
		if got := pathsWithPrefix(paths, word); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// startREPL starts a REPL with a server in this process.
func startREPL(t *testing.T) (*repl, *strings.Builder) {
	t.Helper()
	home := t.TempDir()
	var out strings.Builder
	proc := &process{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
		Env: config.ProcessEnvironment([]string{"HOME=" + home}),
	}
	flags := &clientFlags{Wait: time.Second}
	api, err := flags.open(t.Context(), proc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close(t.Context()) })
	r := &repl{flags: flags, proc: proc, api: api, language: script.Lua}
	if err := r.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, &out
}

func TestCompletionInASession(t *testing.T) {
	t.Parallel()
	r, _ := startREPL(t)
	if err := r.run(t.Context(), "melody = {notes = {}, name = 'a', ['not a name'] = 1} melt = 1"); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string][]string{
		"mel":          {"melody", "melt"},
		"melody.":      {"melody.name", "melody.notes"},
		"melody:no":    {"melody:notes"},
		"melt.x":       {},
		"string.for":   {"string.format"},
		"nothing.else": {},
		"mcp.lua_ev":   {"mcp.lua_eval"},
		"mcp.session_": {"mcp.session_close", "mcp.session_create", "mcp.session_fork", "mcp.session_list", "mcp.session_reset", "mcp.session_script"},
	} {
		if got := r.complete(t.Context(), word); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// TestREPLShowsWhatIsThere checks that nil, what JSON lacks and texts of several lines are shown
// as people read them, and nothing for a statement.
func TestREPLShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	r, out := startREPL(t)
	for _, code := range []string{"x = 1", "print('said')", "nothing", "return map", "0/0", "kv", "'one\\ntwo'", "'one'", "help('kv.get')"} {
		if err := r.run(t.Context(), code); err != nil {
			t.Fatal(err)
		}
	}
	want := regexp.MustCompile("^said\nnil\n\"function\"\n\"-?nan\"\n{\n(?s:.*)\"get\": \"function kv.get\",\n(?s:.*)}\none\ntwo\n\"one\"\n## kv.get\\(key, default\\?\\)\nThe value of a key; ")
	if got := out.String(); !want.MatchString(got) {
		t.Errorf("printed %q", got)
	}
}

func TestSessionOfAnotherLanguage(t *testing.T) {
	t.Parallel()
	r, _ := startREPL(t)
	again := &repl{flags: r.flags, proc: r.proc, api: r.api, session: r.session, asked: script.JavaScript, language: script.JavaScript}
	if err := again.begin(t.Context()); fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(err.Error(), "is in Lua 5.4") {
		t.Errorf("a session in Lua with --language javascript: %v", err)
	}
	again.asked = ""
	if err := again.begin(t.Context()); err != nil || again.language != script.Lua {
		t.Errorf("the same without --language: %q, %v", again.language, err)
	}
}

// scriptedInput is a lineReader that returns given lines and then io.EOF.
type scriptedInput struct {
	lines      []string
	remembered []string
}

func (s *scriptedInput) Prompt(string) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	if line == "^C" {
		return "", errInterrupted
	}
	return line, nil
}

func (s *scriptedInput) Remember(line string) { s.remembered = append(s.remembered, line) }
func (s *scriptedInput) Close() error         { return nil }

func TestInterruptDiscardsInput(t *testing.T) {
	t.Parallel()
	r, out := startREPL(t)
	typed := &scriptedInput{lines: []string{"function f()", "^C", "", "7", "/help", "g(", "1"}}
	if err := r.loop(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "7\nCommands:") {
		t.Errorf("printed %q", got)
	}
	if want := []string{"7", "/help"}; !slices.Equal(typed.remembered, want) {
		t.Errorf("remembered %q, want %q", typed.remembered, want)
	}
}
