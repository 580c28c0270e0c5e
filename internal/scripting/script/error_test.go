package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// generator is a source with one tool that needs an argument, and with more
// tools than suggestions can list.
type generator struct{}

func (generator) Tools(context.Context) ([]tool.Info, error) {
	infos := []tool.Info{
		{Ref: tool.Ref{Space: "hootenanny", Name: "cas_store"}, Input: json.RawMessage(`{"type":"object"}`)},
		{
			Ref:   tool.Ref{Space: "hootenanny", Name: "orpheus_generate"},
			Input: json.RawMessage(`{"type":"object","properties":{"model":{"type":"string"},"bars":{"type":"integer"}},"required":["model"]}`),
		},
	}
	for i := range 25 {
		infos = append(infos, tool.Info{Ref: tool.Ref{Space: "many", Name: fmt.Sprintf("tool%02d", i)}, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return append(infos, tool.Info{Ref: tool.Ref{Space: "zither", Name: "pluck"}, Input: json.RawMessage(`{"type":"object"}`)}), nil
}

func (generator) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Output("done", map[string]any{"job_id": "1"})
}

// TestErrorTexts checks that every kind of error is explained so that a model can correct
// the script. The texts are in testdata/failures; UPDATE=1 rewrites them.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(o *Options) {
		o.Tools = catalog.New(catalog.Options{Sources: []tool.Source{generator{}}})
	})
	for name, q := range map[string]Request{
		"wrong_tool":       {Source: "function main(params)\n  local job = mcp.hootenanny.orpheus_generat { model = \"base\" }\n  return job\nend"},
		"wrong_global":     {Source: "function main(params)\n  prnt(params)\nend"},
		"wrong_function":   {Source: "function main(params)\n  midi.transpos(params.events, 12)\nend"},
		"no_require":       {Source: "local json = require(\"jsn\")\nfunction main(params)\n  return json.encode(params)\nend"},
		"holes":            {Source: "function main(params)\n  return { 1, nil, 3 }\nend"},
		"other_namespace":  {Source: "function main(params)\n  return mcp.zither.plukc { string = 3 }\nend"},
		"wrong_namespace":  {Source: "function main(params)\n  return mcp.hootenany.orpheus_generate { model = \"base\" }\nend"},
		"missing_argument": {Source: "function main(params)\n  return mcp.hootenanny.orpheus_generate { bars = 8 }\nend"},
		"type_error":       {Source: "local function total(list)\n  local sum = 0\n  for _, n in ipairs(list) do sum = sum + n.size end\n  return sum\nend\n\nfunction main(params)\n  local sum = total { { size = 1 }, { size = {} } }\n  return sum\nend"},
		"index_error":      {Source: "function main(params)\n  return params.input.hash\nend"},
		"bad_call":         {Source: "function main(params)\n  return string.rep()\nend"},
		"syntax":           {Source: "function main(params)\n  if params.x then\n    return 1\nend"},
		"reserved_word":    {Source: "function main(params)\n  return mcp.calendar.begin{}, mcp.calendar.end{ id = 1 }\nend"},
		"missing_main":     {Source: "local function main(params)\n  return 1\nend"},
		"tail_call":        {Source: "local function fail() error(\"no\") end\nfunction main(params)\n  return fail()\nend"},
		"raised":           {Source: "function main(params)\n  assert(params.style, \"style parameter is required\")\nend"},
		"raised_table":     {Source: "function main(params)\n  error({ code = 7 })\nend"},
		"result":           {Source: "function main(params)\n  return { 1, 2, name = \"both\" }\nend"},
		"timeout":          {Source: "function main(params)\n  while true do pcall(ipairs, params) end\nend", Limits: Limits{Time: time.Second}}, // by then it is in main
		"timeout_at_once":  {Source: "while true do end\nfunction main() end", Limits: Limits{Time: time.Second}},
		"memory":           {Source: "function main(params)\n  local list = {}\n  while true do\n    list[#list + 1] = (\"x\"):rep(10000)\n  end\nend", Limits: Limits{Memory: 8 << 20}},
		"calls":            {Source: "function main(params)\n  for i = 1, 10 do mcp.hootenanny.cas_store {} end\nend", Limits: Limits{Calls: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q.Main, q.Name = true, "script.lua"
			fail := func() string {
				_, err := r.Run(t.Context(), q)
				var failed *Error
				if !errors.As(err, &failed) {
					t.Fatalf("err = %v", err)
				}
				return string(failed.Kind) + "\n\n" + failed.Error() + "\n"
			}
			text := fail()
			for range 4 { // on a slow machine it may end before it is in main
				if q.Limits.Time > 0 && text != recorded(t, name) {
					text = fail()
				}
			}
			golden(t, name, text)
		})
	}
}

// golden compares text with testdata/failures/<name>.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(recordOf(name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := recorded(t, name); got != want {
		t.Errorf("%s\n--- got\n%s\n--- want\n%s", recordOf(name), got, want)
	}
}

func recordOf(name string) string { return filepath.Join("testdata", "failures", name+".golden") }

// recorded returns the expected text, or nothing if it is about to be written.
func recorded(t *testing.T, name string) string {
	t.Helper()
	want, err := os.ReadFile(recordOf(name))
	if err != nil && os.Getenv("UPDATE") == "" {
		t.Fatal(err)
	}
	return string(want)
}

// hungTool never answers; the run's time is over as soon as it is called.
type hungTool struct{ expire func() }

func (hungTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Space: "slow", Name: "wait"}}}, nil
}

func (h hungTool) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	h.expire()
	<-ctx.Done()
	return tool.Result{}, context.Cause(ctx)
}

// TestHungToolIsNamed checks that a run that is stopped says which tool it waited for.
func TestHungToolIsNamed(t *testing.T) {
	t.Parallel()
	for language, source := range map[string]string{"lua": `return mcp.slow.wait{}`, "javascript": `await mcp.slow.wait({})`} {
		for cause, want := range map[error]string{
			&timeoutError{5 * time.Second}: "the script ran longer than 5s and was stopped while it waited for slow.wait",
			context.DeadlineExceeded:       "the time of the caller was over, and the script was stopped while it waited for slow.wait",
			context.Canceled:               "the run was cancelled while it waited for slow.wait",
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			r := newRunner(t, func(o *Options) { o.Tools = hungTool{func() { cancel(cause) }} })
			_, err := r.Run(ctx, Request{Source: source, Language: language})
			var failure *Error
			if !errors.As(err, &failure) || failure.Message != want {
				t.Errorf("%s: %v, want %s", language, err, want)
			}
		}
	}
}
