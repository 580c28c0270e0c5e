package main

import (
	"bytes"
	"encoding/json"
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
