package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// in is a request in JavaScript.
func in(source string) Request { return Request{Source: source, Language: JavaScript} }

func TestLanguageIsChosen(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for name, c := range map[string]struct {
		q    Request
		want string
	}{
		"named":        {Request{Source: "[1, 2].length", Language: JavaScript}, "2"},
		"by extension": {Request{Source: "[1, 2].length", Name: "a.js"}, "2"},
		"TypeScript":   {Request{Source: "const n: number = 2; n", Name: "a.ts"}, "2"},
		"Lua":          {Request{Source: "#{1, 2}"}, "2"},
		"name wins":    {Request{Source: "#{1, 2}", Name: "a.js", Language: Lua}, "2"},
	} {
		if got, err := r.Run(t.Context(), c.q); err != nil || string(got.Result) != c.want {
			t.Errorf("%s: %s, %v", name, got.Result, err)
		}
	}
	if _, err := r.Run(t.Context(), Request{Source: "1", Language: "cobol"}); err == nil || !strings.Contains(err.Error(), `scripts cannot be written in "cobol"`) {
		t.Errorf("unknown language: %v", err)
	}
	without := newRunner(t, func(o *Options) { o.JavaScript = nil })
	if _, err := without.Run(t.Context(), in("1")); err == nil || !strings.Contains(err.Error(), "switched off") {
		t.Errorf("without an engine: %v", err)
	}
}

func TestJavaScriptMainAndDescribe(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	const source = `
		const describe = () => ({ name: "twice", params: { n: { type: "integer", required: true }, by: { type: "integer", default: 2 } } });
		async function main({ n, by }) { await null; return { n: n * by } }`
	d, err := r.Describe(t.Context(), in(source))
	if err != nil || d.Name != "twice" || len(d.Params) != 2 {
		t.Fatalf("described as %+v, %v", d, err)
	}
	q, err := r.Prepare(t.Context(), Request{Source: source, Language: JavaScript, Main: true, Params: json.RawMessage(`{"n":21}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Run(t.Context(), q); err != nil || string(got.Result) != `{"n":42}` {
		t.Errorf("main gave %s, %v", got.Result, err)
	}
	for source, want := range map[string]Kind{
		"function mian() {}":                               MissingMain,
		"function main( {":                                 SyntaxError,
		"function main() { return nothing.at.all }":        RuntimeError,
		"let main = 5":                                     MissingMain,
		"function main() { const a = {}; a.b.c() }":        IndexError,
		"async function main() { throw [1, 2] }":           RuntimeError,
		"function main() { return new Promise(() => {}) }": RuntimeError,
	} {
		_, err := r.Run(t.Context(), Request{Source: source, Language: JavaScript, Main: true})
		var failure *Error
		if !errors.As(err, &failure) || failure.Kind != want || want == MissingMain && len(failure.Troubleshooting) == 0 {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	_, err = r.Describe(t.Context(), in(`fs.read("x"); function describe() { return {} }`))
	if err == nil || !strings.Contains(err.Error(), "fs.read is not allowed while the script is being described") {
		t.Errorf("an effect while described: %v", err)
	}
	d, err = r.Describe(t.Context(), in(`const now = Date.now(), h = mcp.hootenanny, play = h.play; console.log(os.getenv("HOME"), temp.path("x"));
		function describe() { return { name: "usual" } }`))
	if err != nil || d.Name != "usual" {
		t.Errorf("a usual top level: %+v, %v", d, err)
	}
	_, err = r.Describe(t.Context(), in(`function describe() { for (;;); }`))
	if failed := (*Error)(nil); !errors.As(err, &failed) || failed.Kind != LimitError || !strings.Contains(failed.Message, "used up its 50000000 steps") {
		t.Errorf("an endless describe: %v", err)
	}
}

// meeting is a tool whose calls end when the expected number of calls is in progress.
type meeting struct {
	all    int64
	inside atomic.Int64
	met    chan struct{}
}

func (*meeting) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Space: "slow", Name: "wait"}}}, nil
}

func (m *meeting) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if m.inside.Add(1) == m.all {
		close(m.met)
	}
	select {
	case <-m.met:
		return tool.Output("", json.RawMessage(call.Args))
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

func TestJavaScriptCallsOverlap(t *testing.T) {
	t.Parallel()
	const calls = 200
	m := &meeting{all: calls, met: make(chan struct{})}
	r := newRunner(t, func(o *Options) { o.Tools = m })
	got, err := r.Run(t.Context(), in(fmt.Sprintf(`
		const all = await Promise.all(Array.from({ length: %d }, (_, i) => mcp.slow.wait({ i })));
		all.every((a, i) => a.i === i) && all.length`, calls)))
	if err != nil || string(got.Result) != "200" || got.Tools != calls {
		t.Errorf("got %s after %d calls, %v", got.Result, got.Tools, err)
	}
}

// reversed answers the calls of a script in reverse order: call i returns when the
// script has printed that it received the answer to call i+1.
type reversed struct {
	calcTools
	received [4]chan struct{}
}

func newReversed() *reversed {
	r := &reversed{}
	for i := range r.received {
		r.received[i] = make(chan struct{})
	}
	return r
}

func (r *reversed) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var args struct{ I int }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	if args.I+1 < len(r.received) {
		select {
		case <-r.received[args.I+1]:
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}
	return tool.Output("", json.RawMessage(call.Args))
}

// watch receives the lines that the script prints.
func (r *reversed) watch(line host.OutputLine) {
	var i int
	if _, err := fmt.Sscanf(line.Text, "received %d", &i); err == nil {
		close(r.received[i])
	}
}

// recordStore stores the records of a journal.
type recordStore struct {
	mu      sync.Mutex
	records [][]byte
}

func (t *recordStore) Record(data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, slices.Clone(data))
	return nil
}

// storedRun returns what was recorded so far; a journal may record late, on a timer.
func (t *recordStore) storedRun() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.records)
}

const effectful = `
	const order = [];
	await Promise.all([0, 1, 2, 3].map(async (i) => { const a = await mcp.calc.double({ i }); order.push(a.i); console.log("received " + a.i) }));
	const first = await Promise.race([sleep(0).then(() => "slept"), double({ i: 0 }).catch((e) => e.message)]);
	return { order, first, at: Date.now(), chance: [Math.random(), Math.random()] }`

// TestJavaScriptReplaysAndResumes checks that a replay answers a script from its
// journal, in the recorded order and without tools. With a part of the journal, the
// script resumes where it ends.
func TestJavaScriptReplaysAndResumes(t *testing.T) {
	t.Parallel()
	tools := newReversed()
	source := strings.ReplaceAll(effectful, "double({ i: 0 })", "fs.exists('x') || Promise.resolve('looked')")
	record := &recordStore{}
	journal := host.NewJournal(record, "boot")
	live := newRunner(t, func(o *Options) { o.Tools, o.Random = tools, nil })
	q := in(source)
	q.Handler, q.Watch = journal, tools.watch
	first, err := live.Run(t.Context(), q)
	q.Watch = nil
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(first.Result), `"order":[3,2,1,0]`) {
		t.Errorf("the script received answers in another order than they were given: %s", first.Result)
	}
	steps, err := host.ReadJournal(append(record.storedRun(), journal.Tail())...)
	if err != nil {
		t.Fatal(err)
	}
	offline := newRunner(t, func(o *Options) { o.Tools, o.Random = nil, nil })
	q.Handler = host.NewReplay(steps, nil)
	again, err := offline.Run(t.Context(), q)
	if err != nil || string(again.Result) != string(first.Result) {
		t.Errorf("replayed\n got %s, %v\nwant %s", again.Result, err, first.Result)
	}
	for i := range steps { // a crash after every step
		q.Handler = host.NewReplay(steps[:i], host.NewJournal(&recordStore{}, "later"))
		later := newRunner(t, func(o *Options) { o.Tools, o.Random = &calcTools{}, nil })
		if _, err := later.Run(t.Context(), q); err != nil {
			t.Errorf("resumed after step %d: %v", i, err)
		}
	}
	changed := in(strings.Replace(source, "{ i }", "{ i, more: 1 }", 1))
	changed.Handler = host.NewReplay(steps, nil)
	if _, err := offline.Run(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "does not match its journal") {
		t.Errorf("a changed script: %v", err)
	}
}

func TestJavaScriptIsRehearsed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	handler := host.NewRehearsal(calcTools{}, nil, nil)
	q := in(`fs.write(temp.path("a.txt"), "hello"); await mcp.calc.fail({ n: 1 }); return fs.read(temp.path("a.txt"))`)
	q.Handler = handler
	got, err := r.Run(t.Context(), q)
	if err != nil || string(got.Result) != `"hello"` {
		t.Errorf("got %s, %v", got.Result, err)
	}
	var actions []string
	for _, p := range handler.Plan() {
		actions = append(actions, p.Effect)
	}
	if !slices.Contains(actions, "mcp.call") {
		t.Errorf("planned %q", actions)
	}
}

func TestToolCallsAreCapped(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for language, source := range map[string]string{
		JavaScript: "for (let i = 0; i < 4; i++) await mcp.calc.double({ n: i })",
		Lua:        "for i = 1, 4 do mcp.calc.double{ n = i } end",
	} {
		got, err := r.Run(t.Context(), Request{Source: source, Language: language, Limits: Limits{Tools: 3}})
		var failure *Error
		if !errors.As(err, &failure) || failure.Kind != LimitError || got.Tools != 3 ||
			failure.Message != "calc.double: the run's limit of 3 tool calls is used up" || len(failure.Suggestions) == 0 {
			t.Errorf("%s: %v after %d calls", language, err, got.Tools)
		}
	}
}

// TestHostileJavaScript checks that every script ends, memory stays flat, and the
// next script runs.
func TestHostileJavaScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../js/testdata/hostile/*.js")
	if err != nil || len(files) < 55 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	r := newRunner(t, nil)
	limits := Limits{Time: 50 * time.Millisecond, Memory: 16 << 20, Output: 100_000, Calls: 50}
	before := heap()
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		q := in(string(source))
		q.Limits = limits
		_, err = r.Run(t.Context(), q)
		var failure *Error
		head, _, _ := strings.Cut(string(source), "\n")
		if err == nil && !strings.Contains(head, "well") || err != nil && !errors.As(err, &failure) {
			t.Errorf("%s (%s): %v", filepath.Base(file), head, err)
		}
		if failure != nil && strings.Contains(failure.Message, "broke down") {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	if got, err := r.Run(t.Context(), in("1 + 1")); err != nil || string(got.Result) != "2" {
		t.Errorf("the next script: %s, %v", got.Result, err)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestPlainNamesAreIndexedOnce checks that ten thousand tools are indexed once, not
// at every start.
func TestPlainNamesAreIndexedOnce(t *testing.T) {
	t.Parallel()
	e := &JavaScriptEngine{}
	many := crowd(10_000)
	for range 3 {
		found := e.plainNames(t.Context(), many, []string{"tool_77", "nobody", "twin"}, nil)
		if len(found) != 1 || found["tool_77"] != "s7.tool-77" {
			t.Fatalf("found %v", found)
		}
	}
	index := e.plain.Load()
	e.plainNames(t.Context(), many, []string{"tool_1"}, nil)
	if e.plain.Load() != index {
		t.Error("the index was made again")
	}
}

type roster []tool.Info

func crowd(n int) roster {
	l := roster{{Ref: tool.Ref{Space: "a", Name: "twin"}}, {Ref: tool.Ref{Space: "b", Name: "twin"}}}
	for i := range n {
		l = append(l, tool.Info{Ref: tool.Ref{Space: fmt.Sprintf("s%d", i%10), Name: fmt.Sprintf("tool-%d", i)}})
	}
	return l
}

func (l roster) Tools(context.Context) ([]tool.Info, error) { return l, nil }

func (roster) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
