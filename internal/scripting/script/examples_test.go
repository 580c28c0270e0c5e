package script

import (
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/examples/scripts"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// exampleTools is a source of all examples as tools.
type exampleTools struct {
	runner  *Runner
	scripts map[string]Request
}

func (e *exampleTools) Tools(context.Context) (infos []tool.Info, _ error) {
	for name := range e.scripts {
		infos = append(infos, tool.Info{Ref: tool.Ref{Name: name}, RunsScript: true})
	}
	slices.SortFunc(infos, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (e *exampleTools) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	q := e.scripts[call.Ref.Name]
	q.Params, q.Main, q.Caller = call.Args, true, call.Caller
	q, err := e.runner.Prepare(ctx, q)
	if err != nil {
		return ToolFailure(Outcome{}, err), nil
	}
	outcome, err := e.runner.Run(ctx, q)
	if err != nil {
		return ToolFailure(outcome, err), nil
	}
	return ToolResult(outcome)
}

// call runs an example through the catalog.
func (e *exampleTools) call(t *testing.T, name, args string) tool.View {
	t.Helper()
	result, err := e.runner.options.Tools.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("call %s %s: %v", name, args, err)
	}
	view, err := result.View()
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// openExamples makes tools of all examples, over the stand-in servers.
func openExamples(t *testing.T) (*exampleTools, *hootenanny) {
	t.Helper()
	folder := t.TempDir()
	music := newHootenanny(t, folder)
	e := &exampleTools{scripts: map[string]Request{}}
	tools := catalog.New(catalog.Options{Sources: []tool.Source{&struct{ tool.Source }{fakeTools(music)}, e}})
	seen := newTraces()
	e.runner = newRunner(t, func(o *Options) {
		o.Tools, o.Files = tools, host.FilesOptions{Read: []string{folder}}
		o.Tracer, o.Meter = seen.tracer(), seen.meter()
	})
	files, err := fs.Glob(scripts.Files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := scripts.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(source), "\n"); !strings.HasPrefix(first, "-- ") && !strings.HasPrefix(first, "// ") {
			t.Errorf("%s does not begin with what it shows", file)
		}
		name := strings.TrimSuffix(file, filepath.Ext(file))
		q := Request{Source: string(source), Name: name, Language: LanguageOf(file)}
		d, err := e.runner.Describe(t.Context(), q)
		if err != nil || !d.Defined {
			t.Fatalf("describe %s: %v", file, err)
		}
		e.scripts[name] = q
		if file == "tool_call.lua" {
			e.scripts[d.Name] = q
		}
	}
	tools.Refresh(t.Context())
	return e, music
}

var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

func TestExamples(t *testing.T) {
	t.Parallel()
	p, music := openExamples(t)
	for _, c := range []struct{ name, args, want string }{
		{"hello", `{}`, `{"greeting":"Hello, Hootenanny!"}`},
		{"hello", `{"name":"Ada"}`, `{"greeting":"Hello, Ada!"}`},
		{"tool_call", `{"style":"ambient"}`, `{"success":true,"job_id":"job-1"}`},
		{"multi_variation", `{"variation_set_id":"s","count":1}`, `{"variations":[{"job_id":"job-2","model":"base","tags":["temp:0.9"],"temperature":0.8999999999999999,"variation_index":1,"variation_set_id":"s"}]}`},
		{"midi_transpose", `{"input_hash":"abc123def456"}`, `{"hash":"HASH","events":10}`},
		{"otel_example", `{"text":"one two  three"}`, `{"words":3,"trace_id":"a1000000000000000000000000000001"}`},
		{"error_example", `{"kind":"caught"}`, `{"ok":false,"message":"caught in time"}`},
		{"parallel_fanout", `{"hashes":["abc123def456","nothing"],"limit":2}`, `{"files":[{"hash":"abc123def456","path":"PATH"},{"hash":"nothing","error":"hootenanny.cas_inspect: not_found: nothing under nothing"}],"count":2}`},
		{"fanout", `{"hashes":["abc123def456","nothing"]}`, `{"files":[{"hash":"abc123def456","path":"PATH"},{"hash":"nothing","error":"hootenanny.cas_inspect: not_found: nothing under nothing"}],"count":2}`},
		{"transpose", `{"input_hash":"abc123def456"}`, `{"hash":"HASH","events":10}`},
		{"meta_tool", `{"style":"jazz"}`, `{"job_id":"job-3","completed":[{"job_id":"job-3","status":"complete"}]}`},
	} {
		got := p.call(t, c.name, c.args)
		text := strings.ReplaceAll(hashes.ReplaceAllString(string(got.Structured), "HASH"), music.song, "PATH")
		if got.IsError || text != c.want {
			t.Errorf("%s %s\n got %s %s\nwant %s", c.name, c.args, text, got.Text(), c.want)
		}
	}
	for kind, want := range map[string]string{
		"raise": "something the script does not like", "nil": "attempt to index a nil value (global 'nothing')",
		"type": "attempt to perform arithmetic on a table value", "tool": "Did you mean 'mcp.hootenanny.orpheus_generate'?",
	} {
		got := p.call(t, "error_example", `{"kind":"`+kind+`"}`)
		if !got.IsError || !strings.Contains(got.Text(), want) {
			t.Errorf("error_example %s\n got %s\nwant %s", kind, got.Text(), want)
		}
	}
}

func TestExampleThatWaitsForEvents(t *testing.T) {
	t.Parallel()
	p, _ := openExamples(t)
	sub := p.runner.options.Events.Subscribe(event.Options{Types: []string{"script.mix.done.waiting"}})
	defer sub.Close()
	answer := make(chan tool.View, 1)
	go func() { answer <- p.call(t, "event_hook", `{"count":2}`) }()
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, song := range []string{"one", "two"} {
		if _, err := p.runner.Run(t.Context(), Request{Source: `emit("script.mix.done", { song = "` + song + `" })`}); err != nil {
			t.Fatal(err)
		}
	}
	got := <-answer
	var result struct {
		Heard    []struct{ Song string }
		Complete bool
	}
	if err := json.Unmarshal(got.Structured, &result); err != nil || !result.Complete || len(result.Heard) != 2 || result.Heard[1].Song != "two" {
		t.Errorf("event_hook = %s %s", got.Structured, got.Text())
	}
}
