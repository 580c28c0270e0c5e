package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const longProblem = "cannot start everything: npx: executable file not found in PATH: install Node.js, or write the full path of npx in luanette.toml"

var upstreamRows = [][]string{
	{"everything", "failed", "0", "npx -y @modelcontextprotocol/server-everything --verbose --and-more stdio", longProblem},
	{"files", "connected", "14", "npx", ""},
}

func TestTableGivesWidthToProblems(t *testing.T) {
	t.Parallel()
	got := layOut(strings.Fields("NAME STATE TOOLS ENDPOINT PROBLEM"), upstreamRows, 80, style{})
	want := `NAME        STATE      TOOLS  ENDPOINT
everything  failed     0      npx -y @modelcontextprotocol/server-everything
                              --verbose --and-more stdio
    cannot start everything: npx: executable file not found in PATH: install
    Node.js, or write the full path of npx in luanette.toml
files       connected  14     npx
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWideTableShowsProblemsBeside(t *testing.T) {
	t.Parallel()
	got := layOut(strings.Fields("NAME STATE PROBLEM"), [][]string{{"everything", "failed", longProblem}}, 80, style{})
	want := `NAME        STATE   PROBLEM
everything  failed  cannot start everything: npx: executable file not found in
                    PATH: install Node.js, or write the full path of npx in
                    luanette.toml
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 60, 80, 100, 132, 400} {
		text := layOut(strings.Fields("NAME STATE TOOLS ENDPOINT PROBLEM"), upstreamRows, width, style{})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, 65) {
				t.Errorf("%d columns: a line has %d: %s", width, n, line)
			}
		}
		words := strings.Join(strings.Fields(text), " ")
		for _, word := range []string{"luanette.toml", "executable"} {
			if width >= 60 && !strings.Contains(words, word) {
				t.Errorf("%d columns: %q is missing:\n%s", width, word, text)
			}
		}
	}
}

// On a pipe every row is one line, and nothing is cut.
func TestTableOnAPipe(t *testing.T) {
	t.Parallel()
	text := layOut([]string{"NAME", "PROBLEM"}, [][]string{{"a", longProblem + "\nsecond line\x1b[31m"}}, 0, style{})
	if want := "NAME  PROBLEM\na     " + longProblem + " second line[31m\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestTableColours(t *testing.T) {
	t.Parallel()
	got := layOut([]string{"NAME", "STATE", "PROBLEM"}, [][]string{{"a", "failed", "no such file"}, {"b", "starting, 4 s", ""}}, 80, style{on: true})
	want := "\x1b[2mNAME\x1b[0m  \x1b[2mSTATE\x1b[0m          \x1b[2mPROBLEM\x1b[0m\n" +
		"a     \x1b[31mfailed\x1b[0m         \x1b[31mno such file\x1b[0m\n" +
		"b     \x1b[33mstarting, 4 s\x1b[0m\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
