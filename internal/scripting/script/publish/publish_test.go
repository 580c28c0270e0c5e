package publish

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// sourceStore stores sources in memory.
type sourceStore struct {
	mu        sync.Mutex
	sources   map[cas.Ref]string
	parents   map[cas.Ref]cas.Ref
	languages map[cas.Ref]string // of sources that are not script.Lua
}

func newSourceStore() *sourceStore {
	return &sourceStore{sources: map[cas.Ref]string{}, parents: map[cas.Ref]cas.Ref{}, languages: map[cas.Ref]string{}}
}

func (d *sourceStore) Store(_ context.Context, content []byte, _ string, parent cas.Ref) (cas.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := cas.Sum(content)
	d.sources[ref], d.parents[ref] = string(content), parent
	return ref, nil
}

func (d *sourceStore) put(source string) cas.Ref {
	ref, _ := d.Store(context.Background(), []byte(source), "", cas.Ref{})
	return ref
}

func (d *sourceStore) Read(_ context.Context, ref cas.Ref, _ int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	source, ok := d.sources[ref]
	if !ok {
		return nil, fault.New(fault.NotFound, "no script %s", ref.Short())
	}
	return []byte(source), nil
}

// publishFixture is Published and its dependencies.
type publishFixture struct {
	*Published
	sources *sourceStore
	catalog *catalog.Catalog
	bus     *event.Bus
}

// newRunner returns a runner with a few in-process tools.
func newRunner(t testing.TB, tools tool.Source) *script.Runner {
	t.Helper()
	return script.NewRunner(script.Options{
		Tools: tools, Events: event.New(event.BusOptions{}), Log: slog.New(slog.DiscardHandler),
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: noop.NewMeterProvider().Meter(""),
		Clock: clock.Real(), TempDir: t.TempDir(), Limits: script.Limits{Time: clocktest.Timeout},
	})
}

// openPublished opens Published on the database in folder; its scripts can call published
// tools.
func openPublished(t *testing.T, folder string, d *sourceStore) publishFixture {
	t.Helper()
	database := dbtest.Open(t, dbtest.In(t, folder))
	tools := catalog.New(catalog.Options{Sources: []tool.Source{scripttest.Calc{}}})
	bus := event.New(event.BusOptions{})
	runner := newRunner(t, tools)
	p, err := Open(t.Context(), database, runner, d, Options{
		Reserved: func(name string) bool { return name == "lua_eval" },
		Changed:  tools.Refresh, Events: bus,
	})
	if err != nil {
		t.Fatal(err)
	}
	tools.Add(p)
	tools.Refresh(t.Context())
	return publishFixture{p, d, tools, bus}
}

// named is a script that returns its name and version.
func named(name, answer string) string {
	return "function describe() return {name='" + name + "', description='Says " + answer + "', params={n={type='number',default=1}}} end " +
		"function main(p) return {answer='" + answer + "', n=p.n} end"
}

// call runs a tool through the catalog and returns its structured content.
func (p publishFixture) call(t *testing.T, name, args string) tool.View {
	t.Helper()
	result, err := p.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: name}, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("call %s %s: %v", name, args, err)
	}
	view, err := result.View()
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func (p publishFixture) publish(t *testing.T, source, name string) Version {
	t.Helper()
	v, err := p.Publish(t.Context(), Request{Hash: p.sources.put(source), Name: name, Publisher: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPublishedScriptsAreTools(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	changes := 0
	stop := p.catalog.Exposed().Watch(func() { changes++ })
	defer stop()
	if v := p.publish(t, named("greet", "one"), ""); v.Name != "greet" || v.Version != 1 || !v.Current {
		t.Errorf("Publish = %+v", v)
	}
	if got := p.call(t, "greet", `{"n":3}`); string(got.Structured) != `{"answer":"one","n":3}` || got.Text() == "" {
		t.Errorf("greet = %s", got.Structured)
	}
	if got := p.call(t, "greet", `{"n":null}`); string(got.Structured) != `{"answer":"one","n":1}` {
		t.Errorf("greet without n = %s", got.Structured)
	}
	tools, _ := p.Tools(t.Context())
	const want = `{"name":"greet","description":"Says one","inputSchema":{"type":"object","properties":{"n":{"type":"number","description":"(default: 1)"}},"required":[],"additionalProperties":false},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true},"_meta":{"luanette/script":{"hash":"`
	if len(tools) != 1 || !strings.HasPrefix(string(tools[0].Raw), want) {
		t.Errorf("Tools = %s", tools[0].Raw)
	}
	if changes != 1 {
		t.Errorf("%d change notifications", changes)
	}
}

func TestEmptyTablesGetTheParameterType(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	p.publish(t, "function describe() return {name='kinds', params={l={type='array'}, o={type='object'}, d={type='list', default={}}}} end function main(p) return p end", "")
	if got := p.call(t, "kinds", `{"l":{},"o":[]}`); string(got.Structured) != `{"l":[],"o":{},"d":[]}` {
		t.Errorf("kinds = %s %s", got.Structured, got.Text())
	}
}

func TestNewVersionReplacesTheTool(t *testing.T) {
	t.Parallel()
	folder, d := t.TempDir(), newSourceStore()
	p := openPublished(t, folder, d)
	for _, answer := range []string{"one", "two", "two"} {
		p.publish(t, named("greet", answer), "")
	}
	p.publish(t, named("greet", "one"), "other")
	history, err := p.History(t.Context(), "greet")
	if err != nil || len(history) != 2 || history[0].Version != 2 || !history[0].Current || history[1].Current || history[1].Publisher != "ada" {
		t.Errorf("History = %+v, %v", history, err)
	}

	again := openPublished(t, folder, d)
	if got := again.call(t, "greet", `{}`); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("after opening again greet = %s", got.Structured)
	}
	if had, err := again.Unpublish(t.Context(), "greet"); err != nil || !had {
		t.Errorf("Unpublish = %v, %v", had, err)
	}
	if had, _ := again.Unpublish(t.Context(), "greet"); had {
		t.Error("withdrawn twice")
	}
	if _, err := again.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "greet"}}); fault.CodeOf(err) != fault.ToolNotFound {
		t.Errorf("a withdrawn tool: %v", err)
	}
	if history, err := again.History(t.Context(), "greet"); err != nil || len(history) != 2 || history[0].Current {
		t.Errorf("History = %+v, %v", history, err)
	}
	if v := again.publish(t, named("greet", "three"), ""); v.Version != 3 {
		t.Errorf("published again as version %d", v.Version)
	}
	if _, err := again.History(t.Context(), "nothing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("History of nothing: %v", err)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	for source, want := range map[string]fault.Code{
		"function main() end":                                 fault.Script,
		"function describe() return 7 end":                    fault.Script,
		"function describe(":                                  fault.Script,
		"function describe() return {description='x'} end":    fault.InvalidParams,
		"function describe() return {name='no good'} end":     fault.InvalidParams,
		"function describe() return {name='a__b'} end":        fault.InvalidParams,
		"function describe() return {name='tools'} end":       fault.InvalidParams,
		"function describe() return {name='lua_eval'} end":    fault.Conflict,
		"fs.write('a','b') function describe() return {} end": fault.Script,
	} {
		_, err := p.Publish(t.Context(), Request{Hash: p.sources.put(source)})
		if fault.CodeOf(err) != want || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", source, err)
		}
	}
	if _, err := p.Publish(t.Context(), Request{Hash: cas.Sum([]byte("x")), Name: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("publish nothing: %v", err)
	}
	if tools, _ := p.Tools(t.Context()); len(tools) != 0 {
		t.Errorf("%d tools", len(tools))
	}
}

func TestFailuresOfPublishedScripts(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	p.publish(t, "function describe() return {name='broken'} end\nfunction main()\n  print('so far')\n  error('so good')\nend", "")
	got := p.call(t, "broken", `{}`)
	if !got.IsError || !strings.HasPrefix(got.Text(), "Lua Runtime Error in script broken\n") || !strings.Contains(got.Text(), "     4 |   error('so good')") ||
		!strings.HasSuffix(got.Text(), "Output:\n  so far") {
		t.Errorf("text = %s", got.Text())
	}
	var meta struct {
		Error struct {
			Code    string
			Details struct {
				Kind string
				Line int
			}
		} `json:"luanette/error"`
		Output []struct{ Stream, Text string } `json:"luanette/output"`
	}
	if err := json.Unmarshal(got.Meta, &meta); err != nil || meta.Error.Code != "script_error" || meta.Error.Details.Kind != "RuntimeError" ||
		meta.Error.Details.Line != 4 || len(meta.Output) != 1 || meta.Output[0].Text != "so far" {
		t.Errorf("meta = %s, %v", got.Meta, err)
	}
}

func TestNestingOfPublishedScriptsIsLimited(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	p.publish(t, "function describe() return {name='down', params={n={type='number'}}} end function main(p) return mcp.down{n = p.n + 1} end", "")
	p.publish(t, "function describe() return {name='twice', params={n={type='number'}}} end function main(p) return mcp.calc.double{n = mcp.calc.double{n = p.n}.n}.n end", "")
	if got := p.call(t, "twice", `{"n":2}`); string(got.Structured) != `{"result":8}` || got.Text() != "8" {
		t.Errorf("twice = %s", got.Structured)
	}
	got := p.call(t, "down", `{"n":1}`)
	if !got.IsError || !strings.Contains(got.Text(), "nested more than") {
		t.Errorf("down = %s", got.Text())
	}
}

// TestReloadFollowsAnotherProcess checks that a process uses what another one on the same
// database publishes and withdraws, publishes its events, and logs an unusable version once.
func TestReloadFollowsAnotherProcess(t *testing.T) {
	t.Parallel()
	folder, sources := t.TempDir(), newSourceStore()
	server, command := openPublished(t, folder, sources), openPublished(t, folder, sources)
	var log strings.Builder
	server.options.Log = slog.New(slog.NewTextHandler(&log, nil))
	events := server.bus.Subscribe(event.Options{})
	defer events.Close()
	changes := 0
	defer server.catalog.Exposed().Watch(func() { changes++ })()
	reload := func(want ...string) {
		t.Helper()
		for range 2 { // the second finds nothing new
			if err := server.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, typ := range want {
			if e, err := events.Next(t.Context()); err != nil || e.Type != typ {
				t.Errorf("event %s, %v, want %s", e.Type, err, typ)
			}
		}
	}
	command.publish(t, named("greet", "one"), "")
	reload("script.published")
	command.publish(t, named("greet", "two"), "")
	reload("script.published", "script.invalidate")
	if got := server.call(t, "greet", `{}`); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("greet = %s", got.Structured)
	}
	if _, err := command.Unpublish(t.Context(), "greet"); err != nil {
		t.Fatal(err)
	}
	reload("script.published", "script.invalidate")
	if tools, _ := server.Tools(t.Context()); len(tools) != 0 || changes != 3 {
		t.Errorf("%d tools, %d changes", len(tools), changes)
	}
	lost := command.publish(t, named("lost", "one"), "")
	sources.mu.Lock()
	delete(sources.sources, lost.Hash)
	sources.mu.Unlock()
	reload()
	if got := strings.Count(log.String(), "published script cannot be used"); got != 1 {
		t.Errorf("logged %d times: %s", got, log.String())
	}
}
