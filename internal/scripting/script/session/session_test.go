package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/kv"
)

// sessionFixture is sessions with their own database.
type sessionFixture struct {
	*Sessions
	database *db.DB
}

// openSessions opens the sessions stored in folder, as a process does when it starts.
func openSessions(t testing.TB, folder string, change func(*script.Options), o Options) sessionFixture {
	t.Helper()
	database := dbtest.Open(t, dbtest.In(t, folder))
	sessions, err := Open(t.Context(), database, newRunner(t, change), o)
	if err != nil {
		t.Fatal(err)
	}
	return sessionFixture{sessions, database}
}

// newRunner returns a runner with a few in-process tools.
func newRunner(t testing.TB, change func(*script.Options)) *script.Runner {
	t.Helper()
	o := script.Options{
		Tools:      scripttest.Calc{},
		Events:     event.New(event.BusOptions{}),
		Log:        slog.New(slog.DiscardHandler),
		Tracer:     tracenoop.NewTracerProvider().Tracer(""),
		Meter:      noop.NewMeterProvider().Meter(""),
		Clock:      clock.Real(),
		TempDir:    t.TempDir(),
		Random:     func() uint64 { return 7 },
		JavaScript: javaScript(),
	}
	if change != nil {
		change(&o)
	}
	return script.NewRunner(o)
}

func openKV(t testing.TB) *kv.Store {
	t.Helper()
	s, err := kv.Open(t.Context(), dbtest.Open(t, dbtest.In(t, t.TempDir())))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// javaScript is one engine for all tests: compiling it is the expensive part.
var javaScript = sync.OnceValue(func() *script.JavaScriptEngine {
	e, err := script.NewJavaScript(script.JavaScriptOptions{CacheDir: jstest.Cache()})
	if err != nil {
		panic(err)
	}
	return e
})

// create makes a session owned by ada.
func (p sessionFixture) create(t testing.TB) string {
	t.Helper()
	s, err := p.Create(t.Context(), Spec{Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// say runs a turn as ada that must succeed, and returns its result.
func (p sessionFixture) say(t testing.TB, id, code string) string {
	t.Helper()
	done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: code})
	if err != nil {
		t.Fatalf("%s\n%v", code, err)
	}
	if len(done.Warnings) > 0 {
		t.Errorf("%s\nwarnings %q", code, done.Warnings)
	}
	return string(done.Result)
}

// expect runs turns, each with its expected result.
func (p sessionFixture) expect(t testing.TB, id string, turns ...string) {
	t.Helper()
	for pair := range slices.Chunk(turns, 2) {
		if got := p.say(t, id, pair[0]); got != pair[1] {
			t.Errorf("%s\n got %s\nwant %s", pair[0], got, pair[1])
		}
	}
}

func TestSessionKeepsGlobals(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id,
		"x = 10", "null",
		"x", "10",
		"function twice(n) return 2 * n + (hidden or 0) end", "null",
		"local hidden = 5 function keep() hidden = hidden + 1 return hidden end", "null",
		"return twice(x), keep(), keep()", "[20,6,7]",
		"co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return co()", "1",
		"co()", "2",
		"words = string.gmatch('one two three', '%a+') return words()", `"one"`,
		"words()", `"two"`,
		"t = setmetatable({}, {__index = function(_, k) return k .. '!' end}) t.self = t", "null",
		"return t.self.self.hey", `"hey!"`,
		"double = mcp.calc.double", "null",
		"return double{n = 4}.n, mcp.calc.double{n = 5}.n", "[8,10]",
		"p = parallel.map({1, 2, 3}, function(n) return mcp.calc.double{n = n}.n end) return p", "[2,4,6]",
		"none = json.null return json.encode({none})", `"[null]"`,
		"list = json.array{} return json.encode(list)", `"[]"`,
		"return none == json.null, json.encode(list)", `[true,"[]"]`,
	)
}

func TestOutputBelongsToItsTurn(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	for turn, code := range []string{"print('a') x = 1", "io.write('b') x = x + 1", "print('c') error('no')", "print(x)"} {
		done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: code})
		if (err != nil) != (turn == 2) {
			t.Errorf("%s: %v", code, err)
		}
		want := []string{"a", "b", "c", "2"}[turn]
		if len(done.Output) != 1 || done.Output[0].Text != want {
			t.Errorf("%s said %v, want %q", code, done.Output, want)
		}
	}
}

// TestFunctionIsShown checks that a session shows a function that was typed to see it.
func TestFunctionIsShown(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: "return map"})
	if err != nil || !strings.HasPrefix(string(done.Result), `"function`) {
		t.Errorf("%s, %v", done.Result, err)
	}
	for code, silent := range map[string]bool{"x = 1": true, "print(x)": true, "nil": false, "return nothing": false} {
		if done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: code}); err != nil || done.Silent != silent || string(done.Result) != "null" {
			t.Errorf("%s: silent is %v, the result %s, %v", code, done.Silent, done.Result, err)
		}
	}
}

func TestErrorsKeepTheSession(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "x = 1\nfunction fail()\n  error('boom')\nend", "null")
	for code, want := range map[string]string{
		"x = 2 error('no')":                  "turn2:1: no",
		"x = = 2":                            "unexpected symbol",
		"return {('x'):rep(2000000), print}": "function",
		"mcp.calc.fail{}":                    "the abacus is broken",
		"\n\n\nlocal a = fail()":             "turn1:3: boom",
	} {
		done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: code})
		var failure *script.Error
		if !errors.As(err, &failure) || !strings.Contains(failure.Message, strings.TrimPrefix(want, "turn2:1: ")) {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
		if strings.HasPrefix(want, "turn1") && (failure.Line != 4 || failure.SourceLine != "local a = fail()") {
			t.Errorf("%s: reported at line %d %q", code, failure.Line, failure.SourceLine)
		}
		if len(done.Warnings) > 0 {
			t.Errorf("%s: warnings %q", code, done.Warnings)
		}
	}
	p.expect(t, id, "x", "2")
}

func TestStoppedTurnChangesNothing(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "x = 1 t = {a = 1}", "null")
	cancelled, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		ctx  context.Context
		q    script.Request
		kind script.Kind
	}{
		{t.Context(), script.Request{Source: "x = 2 t.a = nil while true do end", Limits: script.Limits{Time: 20 * time.Millisecond}}, script.Timeout},
		{t.Context(), script.Request{Source: "x = 3 t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", Limits: script.Limits{Memory: 8 << 20}}, script.OutOfMemory},
		{cancelled, script.Request{Source: "x = 4 t.a = 2 progress(0.5) while true do end", Caller: calls(cancel)}, script.Cancelled},
	} {
		done, err := p.Eval(c.ctx, "ada", id, c.q)
		var failure *script.Error
		if !errors.As(err, &failure) || failure.Kind != c.kind {
			t.Fatalf("%s: %v", c.q.Source, err)
		}
		if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "as it was before") {
			t.Errorf("%s: warnings %q", c.q.Source, done.Warnings)
		}
		p.expect(t, id, "return x, t.a", "[1,1]")
	}
}

// calls is a caller that does something when progress is reported.
func calls(do func()) *tool.Caller { return &tool.Caller{Progress: func(tool.Progress) { do() }} }

func TestResetAndForkAndClose(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "x = 1 map = nil function next_x() x = x + 1 return x end", "null")
	forked, err := p.Fork(t.Context(), "ada", id, "branch")
	if err != nil {
		t.Fatal(err)
	}
	if forked.ID == id || forked.Name != "branch" || forked.Owner != "ada" {
		t.Errorf("forked = %+v", forked)
	}
	p.expect(t, forked.ID, "return next_x(), next_x()", "[2,3]")
	p.expect(t, id, "return next_x(), map", "[2,null]")
	if _, err := p.Reset(t.Context(), "ada", id); err != nil {
		t.Fatal(err)
	}
	p.expect(t, id, "return x, next_x, #map({1, 2}, tostring)", "[null,null,2]")
	p.expect(t, forked.ID, "x", "3")
	if err := p.Close(t.Context(), "ada", id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Eval(t.Context(), "ada", id, script.Request{Source: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("closed: %v", err)
	}
	p.expect(t, forked.ID, "x", "3")
}

func TestSessionsSurviveARestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	before := openSessions(t, folder, nil, Options{})
	id := before.create(t)
	before.expect(t, id, `
		x = 10
		function add(n) x = x + n return x end
		next_word = coroutine.wrap(function() for w in ("a b c"):gmatch("%a") do coroutine.yield(w) end end)
		double = mcp.calc.double
		return next_word()`, `"a"`)
	if err := before.database.Close(); err != nil {
		t.Fatal(err)
	}
	after := openSessions(t, folder, nil, Options{})
	list, err := after.List(t.Context(), "ada")
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].Turns != 1 || list[0].Size == 0 {
		t.Fatalf("list = %+v, %v", list, err)
	}
	after.expect(t, id, "return add(5), next_word(), double{n = 2}.n", `[15,"b",4]`, "print(x) io.write('rest') return x", "15")
}

func TestDamagedStateCanBeReset(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "x = 1", "null")
	err := p.database.Exec(t.Context(), "UPDATE sessions SET state = $1, turns = turns + 1", []byte("rubbish"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Eval(t.Context(), "ada", id, script.Request{Source: "x"})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.HintOf(err), "session_reset") {
		t.Errorf("err = %v", err)
	}
	if _, err := p.Reset(t.Context(), "ada", id); err != nil {
		t.Fatal(err)
	}
	p.expect(t, id, "x", "null")
}

func TestSessionsBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{Limit: 2})
	id := p.create(t)
	ctx := t.Context()
	_, evaluated := p.Eval(ctx, "bob", id, script.Request{Source: "x = 1"})
	_, forked := p.Fork(ctx, "bob", id, "")
	_, reset := p.Reset(ctx, "bob", id)
	for _, err := range []error{evaluated, forked, reset, p.Close(ctx, "bob", id)} {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("bob: %v", err)
		}
	}
	if list, err := p.List(ctx, "bob"); err != nil || len(list) != 0 {
		t.Errorf("bob sees %v, %v", list, err)
	}
	other := p.create(t)
	if other == id || len(id) < 26 {
		t.Errorf("ids %q and %q", id, other)
	}
	if _, err := p.Create(ctx, Spec{Owner: "ada"}); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a third: %v", err)
	}
	if _, err := p.Create(ctx, Spec{Owner: "bob"}); err != nil {
		t.Errorf("bob's first: %v", err)
	}
	if _, err := p.Create(ctx, Spec{Owner: "bob", Language: "cobol"}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("cobol: %v", err)
	}
}

func TestIdleSessionsExpire(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	p := openSessions(t, t.TempDir(), nil, Options{Idle: time.Hour, Clock: now})
	used, idle := p.create(t), p.create(t)
	now.Advance(59 * time.Minute)
	p.expect(t, used, "x = 1", "null")
	now.Advance(time.Minute)
	if _, err := p.Eval(t.Context(), "ada", idle, script.Request{Source: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("idle: %v", err)
	}
	list, err := p.List(t.Context(), "ada")
	if err != nil || len(list) != 1 || list[0].ID != used || !list[0].Expires.Equal(now.Now().Add(59*time.Minute)) {
		t.Errorf("list = %+v, %v", list, err)
	}
	p.create(t) // sweeps
	var rows int
	err = p.database.QueryRow(t.Context(), "SELECT count(*) FROM sessions").Scan(&rows)
	if err != nil || rows != 2 {
		t.Errorf("%d rows, %v", rows, err)
	}
	p.expect(t, used, "x", "1")
}

func TestTurnsWaitForEachOther(t *testing.T) {
	t.Parallel()
	const turns = 20
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	var all sync.WaitGroup
	for range turns {
		all.Go(func() { p.say(t, id, "local n = (x or 0) mcp.calc.double{n = 1} x = n + 1") })
	}
	all.Wait()
	p.expect(t, id, "x", fmt.Sprint(turns))
}

// TestSessionsAreSharedByProcesses checks that a state cached in memory is used only while
// it is the newest: another process on the same database changes the session as well.
func TestSessionsAreSharedByProcesses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	one, other := openSessions(t, folder, nil, Options{}), openSessions(t, folder, nil, Options{})
	id := one.create(t)
	for turn := range 6 {
		p := []sessionFixture{one, other, other, one, other, one}[turn]
		p.expect(t, id, "x = (x or 0) + 1 return x", fmt.Sprint(turn+1))
	}
	for _, p := range []sessionFixture{one, other} {
		if _, err := p.Reset(t.Context(), "ada", id); err != nil {
			t.Fatal(err)
		}
		one.expect(t, id, "x", "null", "x = 1", "null")
		other.expect(t, id, "x", "1")
	}
}

// TestReadOnlyTurnWritesNothing checks that a turn that changes nothing writes
// nothing and is not counted.
func TestReadOnlyTurnWritesNothing(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "x = {1, 2} function f() return #x end", "null", "return x", "[1,2]", "f()", "2", "print(x[1])", "null")
	list, err := p.List(t.Context(), "ada")
	if err != nil || list[0].Turns != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	p.expect(t, id, "x[1] = 3", "null")
	if list, err = p.List(t.Context(), "ada"); err != nil || list[0].Turns != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSessionLimits(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{State: 100 << 10, Turn: script.Limits{Calls: 3}})
	for _, c := range []struct {
		code  string
		limit script.Limits // one limit each, so that a busy machine does not hit another
		kind  script.Kind
	}{
		{"while true do end", script.Limits{Time: 30 * time.Millisecond}, script.Timeout},
		{"s = ('x'):rep(8 * 2^20)", script.Limits{Memory: 4 << 20}, script.OutOfMemory},
		{"for i = 1, 4 do temp.list() end", script.Limits{}, script.LimitError},
	} {
		narrow, err := p.Create(t.Context(), Spec{Owner: "ada", Limits: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Eval(t.Context(), "ada", narrow.ID, script.Request{Source: c.code, Limits: script.Limits{Time: time.Hour, Memory: 1 << 30}})
		var failure *script.Error
		if !errors.As(err, &failure) || failure.Kind != c.kind {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	id := p.create(t)
	p.expect(t, id, "x = 1", "null")
	done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: "x = 2 s = {} for i = 1, 200 do s[i] = ('x'):rep(1000) .. i end"})
	if err != nil || len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "102400 are allowed") {
		t.Errorf("too large: %q, %v", done.Warnings, err)
	}
	p.expect(t, id, "x", "1")
}

// TestTurnsKeepTheirOrder blocks the first turn in a tool until the others are
// queued behind it.
func TestTurnsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := openSessions(t, t.TempDir(), func(o *script.Options) {
			o.Tools = scripttest.Toolbox{{Space: "sync", Name: "wait"}: scripttest.HandlerFor(func(context.Context, struct{}) (any, error) {
				<-release
				return nil, nil
			})}
		}, Options{})
		id := p.create(t)
		var all sync.WaitGroup
		all.Go(func() { p.say(t, id, "order = {} mcp.sync.wait{}") })
		for i := 1; i <= 3; i++ {
			synctest.Wait()
			all.Go(func() { p.say(t, id, fmt.Sprintf("order[#order + 1] = %d", i)) })
		}
		synctest.Wait()
		close(release)
		all.Wait()
		p.expect(t, id, "order", "[1,2,3]")
	})
}

func TestTurnCannotWaitForItself(t *testing.T) {
	t.Parallel()
	var p sessionFixture
	var id string
	p = openSessions(t, t.TempDir(), func(o *script.Options) {
		o.Tools = scripttest.Toolbox{{Space: "self", Name: "eval"}: scripttest.HandlerFor(func(ctx context.Context, _ struct{}) (any, error) {
			_, err := p.Eval(ctx, "ada", id, script.Request{Source: "x = 2"})
			return nil, err
		})}
	}, Options{})
	id = p.create(t)
	p.expect(t, id, "x = 1 return (pcall(mcp.self.eval, {}))", "false", "x", "1")
}

func TestFilesLeftOpenAreSavedByTheirTurn(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, "f = io.open(temp.path('a'), 'w') f:write('x')", "null")
	// The file belonged to the first turn, whose temp folder was removed.
	if done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: "y = 1 f:write('y')"}); err == nil || len(done.Warnings) != 1 {
		t.Errorf("a file of an earlier turn: %v, %q", err, done.Warnings)
	}
	p.expect(t, id, "y", "null")
}

func TestUnsavableValuesAreNamed(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	row, err := p.load(t.Context(), "ada", id, noVersion)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.runner.Run(t.Context(), script.Request{Source: "x = 7", State: &script.SavedState{}})
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := p.saveTurn(t.Context(), row, nil, partialState{outcome.State})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "socket") {
		t.Errorf("warnings %q, %v", warnings, err)
	}
	p.expect(t, id, "return x, socket", "[7,null]")
}

// partialState is a state with a value that cannot be saved.
type partialState struct{ script.State }

func (s partialState) Snapshot(ctx context.Context) ([]byte, []string, error) {
	saved, _, err := s.State.Snapshot(ctx)
	return saved, []string{"socket"}, err
}

// BenchmarkTurn measures a turn in a session: one that changes its state, which is saved
// to disk; the same when the state must be restored first; and one that only
// reads.
func BenchmarkTurn(b *testing.B) {
	for name, turn := range map[string]struct {
		code    string
		options Options
	}{
		"change":  {"x = (x or 0) + 1", Options{}},
		"restore": {"x = (x or 0) + 1", Options{Memory: 1}},
		"look":    {"x", Options{}},
	} {
		b.Run(name, func(b *testing.B) {
			p := openSessions(b, b.TempDir(), nil, turn.options)
			id := p.create(b)
			for b.Loop() {
				p.say(b, id, turn.code)
			}
		})
	}
}

func TestJavaScriptSessions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := openSessions(t, folder, nil, Options{})
	s, err := p.Create(t.Context(), Spec{Owner: "ada", Language: script.JavaScript})
	if err != nil {
		t.Fatal(err)
	}
	p.expect(t, s.ID,
		"let x = 10; const inc = (by: number) => { x += by; return x }", "null",
		"inc(5)", "15",
		"let x = 1; inc(1)", "2",
		"await double({ n: 4 }).then((a) => a.n)", "8",
		"globalThis.song = midi.decode(midi.encode({ events: [{ type: 'note_on', note: 60 }] })); midi.transpose(song, 2); song.events[0].note", "62")
	done, err := p.Eval(t.Context(), "ada", s.ID, script.Request{Source: "x = 99; for (;;);", Limits: script.Limits{Time: 100 * time.Millisecond}})
	if err == nil || len(done.Warnings) != 1 {
		t.Errorf("a turn that was stopped: %v, %q", err, done.Warnings)
	}
	if _, err := p.Eval(t.Context(), "ada", s.ID, script.Request{Source: "x = 7; throw new Error('kept')"}); err == nil {
		t.Error("a turn that fails")
	}
	if _, err := p.Eval(t.Context(), "ada", s.ID, script.Request{Source: "x", Language: script.Lua}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("another language: %v", err)
	}
	fork, err := p.Fork(t.Context(), "ada", s.ID, "")
	if err != nil || fork.Language != script.JavaScript {
		t.Fatalf("fork speaks %q, %v", fork.Language, err)
	}
	p.expect(t, fork.ID, "x += 1", "8")
	later := openSessions(t, folder, nil, Options{}) // another process
	later.expect(t, s.ID, "[x, inc(1), song.events[0].note]", "[7,8,62]")
	if _, err := p.Create(t.Context(), Spec{Owner: "ada", Language: "cobol"}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("an unknown language: %v", err)
	}
}

// TestErrorsPersistInSessions checks that a stored error still prints as text after a
// restart.
func TestErrorsPersistInSessions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	before := openSessions(t, folder, nil, Options{})
	id := before.create(t)
	before.expect(t, id, `_, problem = pcall(mcp.calc.fail, {}) find = problem.find return problem.code`, `"upstream_error"`)
	if err := before.database.Close(); err != nil {
		t.Fatal(err)
	}
	after := openSessions(t, folder, nil, Options{})
	after.expect(t, id, `return tostring(problem), problem:match("abacus"), find(problem, "calc")`,
		`["calc.fail: internal_error: the abacus is broken","abacus",1,4]`)
}
