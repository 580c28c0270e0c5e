package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// TestOutputIsShownOnce checks that each line of a script is printed once, on the stream it
// was written to.
func TestOutputIsShownOnce(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	shown := newLive(&process{Stdout: &out, Stderr: &errs})
	shown.log(tool.Log{Logger: "git", Data: json.RawMessage(`{"number":1,"text":"not the script's"}`)})
	shown.log(tool.Log{Logger: "script", Data: json.RawMessage(`{"number":1,"stream":"stdout","text":"one"}`)})
	shown.progress(tool.Progress{Progress: 1, Total: 4, Message: "a quarter"})
	shown.log(tool.Log{Logger: "script", Data: json.RawMessage(`{"number":2,"stream":"log","text":"two"}`)})
	shown.end()
	err := shown.printResult(json.RawMessage(`{"result":{"n":1},"output":[{"stream":"stdout","text":"one"},{"stream":"log","text":"two"},{"stream":"stdout","text":"three"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "one\nthree\n{\n  \"n\": 1\n}\n"; got != want {
		t.Errorf("standard output is %q, want %q", got, want)
	}
	const bar = "█████░░░░░░░░░░░░░░░  25% a quarter"
	if got, want := errs.String(), "\r\x1b[K"+bar+"\r\x1b[Ktwo\n\r\x1b[K"+bar+"\r\x1b[K"; got != want {
		t.Errorf("standard error is %q, want %q", got, want)
	}
}

// TestTextOfSeveralLinesIsPrintedAsItIs checks what a script's result looks like.
func TestTextOfSeveralLinesIsPrintedAsItIs(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`"one\ntwo\n"`: "one\ntwo\n", `"one"`: "\"one\"\n", `["one\ntwo"]`: "[\n  \"one\\ntwo\"\n]\n", "7": "7\n", "null": "",
	} {
		var out bytes.Buffer
		if err := newLive(&process{Stdout: &out}).printResult(json.RawMessage(`{"result":` + result + `}`)); err != nil || out.String() != want {
			t.Errorf("%s is shown as %q, %v, want %q", result, out.String(), err, want)
		}
	}
}

// TestToolIsShownWithItsParameters checks that a disconnected server is mentioned only where that
// is known.
func TestToolIsShownWithItsParameters(t *testing.T) {
	t.Parallel()
	shown := shownTool{
		Name: "up.add", Description: "Adds.", LuaPath: "mcp.up.add", Stale: true,
		Input: json.RawMessage(`{"properties":{"a":{"type":"integer","description":"the first"},"b":{"type":"string"}},"required":["a"]}`),
	}
	const want = `up.add
Adds.

PARAMETER  TYPE     REQUIRED  DESCRIPTION
a          integer  yes       the first (integer)
b          string   no

in scripts:  mcp.up.add{…}
from here:   luanette call up.add a=…
`
	for connected, want := range map[bool]string{false: want, true: strings.Replace(want, "in scripts", "its server is currently disconnected\nin scripts", 1)} {
		var out bytes.Buffer
		if err := shown.print(&process{Stdout: &out}, connected); err != nil || out.String() != want {
			t.Errorf("connected %v: %v\n%s", connected, err, &out)
		}
	}
}

// TestCommandsOfCommandsAreSuggested checks what is said to people who leave out the first word.
func TestCommandsOfCommandsAreSuggested(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"schedule list": "did you mean `luanette job schedule list`?\n",
		"schedule":      "did you mean `luanette job schedule`?\n",
		"org list":      "it has usage: Show what an organisation has used of its quotas today.\n",
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), &process{Stdout: &bytes.Buffer{}, Stderr: &errs}, strings.Fields(line)); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s", line, code, &errs)
		}
	}
}

func TestProgressBarFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p     tool.Progress
		width int
		want  string
	}{
		{tool.Progress{Progress: 3, Total: 2}, 80, "████████████████████ 100% "},
		{tool.Progress{Progress: 7, Message: "files"}, 80, "7 files"},
		{tool.Progress{Progress: 7, Message: "files"}, 5, "7 fi"},
	} {
		if got := progressBar(c.p, c.width); got != c.want {
			t.Errorf("%+v at width %d is %q, want %q", c.p, c.width, got, c.want)
		}
	}
}
