package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docScript is a script of docs/scripts.md, with its input and its expected output.
type docScript struct {
	line                         int
	language                     string
	source, params, result, fail string
}

// languages are the languages of scripts by the words that open their code blocks.
var languages = map[string]string{"lua": Lua, "js": JavaScript, "ts": JavaScript}

// docScripts parses a page: each block that is a script, and the blocks that follow it.
func docScripts(page string) []docScript {
	var all []docScript
	var text []string
	kind, begin := "", 0
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && kind == "" && fence != "":
			kind, begin, text = fence, i+1, nil
		case isFence:
			body := strings.Join(text, "\n")
			switch kind {
			case "lua", "js", "ts":
				all = append(all, docScript{line: begin, language: languages[kind], source: body})
			case "json params":
				all[len(all)-1].params = body
			case "json result":
				all[len(all)-1].result = body
			case "text error":
				all[len(all)-1].fail = body
			}
			kind = ""
		case kind != "":
			text = append(text, line)
		}
	}
	return all
}

// TestPageOfScripts checks that every script of docs/scripts.md does what the page says.
func TestPageOfScripts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "scripts.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := docScripts(string(page))
	if len(found) < 8 {
		t.Fatalf("only %d scripts on the page", len(found))
	}
	for _, l := range found {
		t.Run(fmt.Sprintf("line %d", l.line), func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, func(o *Options) {
				o.Tools = fakeTools(newHootenanny(t, t.TempDir()))
				o.Upstreams = &upstreamManager{}
				o.KV = openKV(t)
			})
			l.learn(t, r)
		})
	}
}

func (l docScript) learn(t *testing.T, r *Runner) {
	t.Helper()
	q := Request{Source: l.source, Language: l.language, Main: l.params != "", Params: json.RawMessage(l.params)}
	var outcome Outcome
	var err error
	if q.Main {
		q, err = r.Prepare(t.Context(), q)
	}
	if err == nil {
		outcome, err = r.Run(t.Context(), q)
	}
	switch {
	case l.fail != "":
		if err == nil || !strings.Contains(err.Error(), l.fail) {
			t.Errorf("failed with\n%v\nwant\n%s", err, l.fail)
		}
	case err != nil:
		t.Error(err)
	case l.result != "":
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(l.result)); err != nil {
			t.Fatal(err)
		}
		if string(outcome.Result) != want.String() {
			t.Errorf("returned %s, want %s", outcome.Result, &want)
		}
	}
}
