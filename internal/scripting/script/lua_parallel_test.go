package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
)

// overlapTools are tools that answer only if calls overlap.
type overlapTools struct {
	mu        sync.Mutex
	here      int
	most      int
	cancelled int
	barriers  map[int]chan struct{} // each is closed when that number was answered
	arrivals  chan struct{}
}

func newOverlapTools() *overlapTools {
	return &overlapTools{barriers: map[int]chan struct{}{}, arrivals: make(chan struct{}, 1000)}
}

func (x *overlapTools) tools() toolbox {
	return toolbox{
		{Space: "sync", Name: "meet"}:   scripttest.HandlerFor(x.meet),
		{Space: "sync", Name: "after"}:  scripttest.HandlerFor(x.after),
		{Space: "sync", Name: "hang"}:   scripttest.HandlerFor(x.hang),
		{Space: "sync", Name: "refuse"}: scripttest.HandlerFor(x.refuse),
		{Space: "sync", Name: "echo"}:   scripttest.HandlerFor(func(_ context.Context, in map[string]any) (any, error) { return in, nil }),
	}
}

func (x *overlapTools) barrier(n int) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.barriers[n] == nil {
		x.barriers[n] = make(chan struct{})
	}
	return x.barriers[n]
}

// meet answers once n calls of it are in progress at the same time.
func (x *overlapTools) meet(ctx context.Context, in struct{ N, Round int }) (any, error) {
	barrier := x.barrier(-in.Round - 1)
	x.mu.Lock()
	x.here++
	x.most = max(x.most, x.here)
	if x.here == in.N {
		close(barrier)
		x.here = 0
	}
	x.mu.Unlock()
	select {
	case <-barrier:
		return map[string]int{"round": in.Round}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// after answers as number N once number After has been answered; 0 at once.
func (x *overlapTools) after(ctx context.Context, in struct{ N, After int }) (any, error) {
	if in.After > 0 {
		select {
		case <-x.barrier(in.After):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	close(x.barrier(in.N))
	return map[string]int{"n": in.N}, nil
}

// hang never answers.
func (x *overlapTools) hang(ctx context.Context, _ struct{}) (any, error) {
	x.arrivals <- struct{}{}
	<-ctx.Done()
	x.mu.Lock()
	x.cancelled++
	x.mu.Unlock()
	return nil, context.Cause(ctx)
}

// refuse fails once the given number of calls hang.
func (x *overlapTools) refuse(ctx context.Context, in struct{ Hanging int }) (any, error) {
	for range in.Hanging {
		select {
		case <-x.arrivals:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, fault.New(fault.NotFound, "nothing there")
}

func TestParallel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, source, want string }{
		{"map overlaps", `
			return #parallel.map({1, 2, 3, 4, 5}, function() return sync.meet{n = 5}.round end)`, `5`},
		{"in the list's order whatever ends first", `
			return parallel.map({1, 2, 3}, function(v) return sync.after{n = v, after = (v + 1) % 4}.n end)`, `[1,2,3]`},
		{"in rounds of the limit", `
			local n = 0
			return parallel.map({1, 2, 3, 4}, function(v, i) return sync.meet{n = 2, round = (i + 1) // 2}.round end, 2)`, `[1,1,2,2]`},
		{"the limit is eight", `
			local most, now = 0, 0
			parallel.map({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, function(v, i)
				now = now + 1; most = math.max(most, now)
				sync.meet{n = 8, round = (i - 1) // 8}
				now = now - 1
			end)
			return most`, `8`},
		{"several calls in one task", `
			return parallel.map({1, 2}, function(v)
				local total = 0
				for round = 1, 3 do total = total + sync.meet{n = 2, round = round}.round end
				return total
			end)`, `[6,6]`},
		{"through pcall", `
			return parallel.map({1, 2}, function(v)
				local ok, answer = pcall(sync.meet, {n = 2})
				return ok and answer.round
			end)`, `[0,0]`},
		{"nested", `
			return parallel.map({1, 2}, function(a)
				return parallel.map({1, 2}, function(b) sync.meet{n = 4}; return a * 10 + b end)
			end)`, `[[11,12],[21,22]]`},
		{"spawn and wait_all", `
			local one = parallel.spawn(function(x) return sync.meet{n = 2}, x end, "x")
			local two = parallel.spawn(function() sync.meet{n = 2}; return 2 end)
			local all = parallel.wait_all{one, two}
			return all[1].round, all[2], select(2, one:wait()), one:done()`, `[0,2,"x",true]`},
		{"a task waits for another", `
			local first = parallel.spawn(function() return sync.after{n = 1, after = 2}.n end)
			local second = parallel.spawn(function() return first:wait() + 1 end)
			local third = parallel.spawn(function() return sync.after{n = 2}.n end)
			return second:wait(), third:wait()`, `[2,2]`},
		{"spawned inside a task", `
			local outer = parallel.spawn(function()
				local inner = {}
				for i = 1, 3 do inner[i] = parallel.spawn(function() sync.meet{n = 3}; return i end) end
				return parallel.wait_all(inner)
			end)
			return outer:wait()`, `[1,2,3]`},
		{"nothing to do", `
			return json.encode(parallel.map({}, print)), #parallel.wait_all{}`, `["[]",0]`},
		{"without waiting", `
			return parallel.map({1, 2, 3}, function(v) return v * v end, 2)`, `[1,4,9]`},
		{"tasks that yield by themselves take turns", `
			local said = {}
			parallel.map({"a", "b"}, function(v) for i = 1, 2 do said[#said + 1] = v; coroutine.yield() end end)
			return table.concat(said)`, `"abab"`},
		{"below a callback calls come one by one", `
			return (string.gsub("ab", ".", function(c)
				return parallel.map({c}, function(v) return sync.echo{v = v}.v .. "!" end)[1]
			end))`, `"a!b!"`},
		{"in a coroutine of the script's own", `
			local co = coroutine.wrap(function()
				coroutine.yield("mine")
				return parallel.map({1, 2}, function() return sync.meet{n = 2}.round end)
			end)
			return co(), co()`, `["mine",[0,0]]`},
		{"a coroutine of the script's own in a task", `
			return parallel.map({1, 2}, function(v)
				local co = coroutine.wrap(function() coroutine.yield(sync.echo{v = v}.v); return "end" end)
				return co() .. co()
			end)`, `["1end","2end"]`},
		{"cancel", `
			local task = parallel.spawn(function() sync.hang{} end)
			return task:cancel(), task:cancel(), task:done(), pcall(task.wait, task)`, `[true,false,true,false,"the task was cancelled"]`},
		{"cancel closes variables", `
			local said
			local task = parallel.spawn(function()
				local x <close> = setmetatable({}, {__close = function() said = "closed" end})
				sync.hang{}
			end)
			task:cancel()
			return said`, `"closed"`},
		{"tasks left alone end with the run", `
			parallel.spawn(function() sync.hang{} end)
			return "gone"`, `"gone"`},
		{"a table as error", `
			local ok, problem = pcall(parallel.map, {1}, function() error({code = 7}) end)
			return ok, problem.code`, `[false,7]`},
		{"an error names the item", `
			return pcall(parallel.map, {1, 2, 3}, function(v) if v == 2 then error("no", 0) end end)`,
			`[false,"no (item 2 of parallel.map)"]`},
		{"an error after a call", `
			return pcall(parallel.map, {1, 2}, function(v) sync.meet{n = 2}; if v == 2 then error("no", 0) end sync.hang{} end)`,
			`[false,"no (item 2 of parallel.map)"]`},
		{"wait_all ends all, then tells the first", `
			local function task(after, n) return parallel.spawn(function() sync.after{n = n, after = after}; error("e" .. n, 0) end) end
			return pcall(parallel.wait_all, {task(2, 1), task(0, 2)})`, `[false,"e1 (task 1 of parallel.wait_all)"]`},
		{"waiting for each other", `
			local one, two
			one = parallel.spawn(function() coroutine.yield(); two:wait() end)
			two = parallel.spawn(function() one:wait() end)
			return pcall(one.wait, one)`, `[false,"the task waits for something that cannot happen"]`},
		{"wrong arguments", `
			local _, a = pcall(parallel.map, 1, print)
			local _, b = pcall(parallel.map, {1}, print, 0)
			local _, c = pcall(parallel.wait, {})
			return a, b, c`, `["bad argument #1 to 'map' (table expected, got number)","bad argument #3 to 'map' (a number of at least 1 expected, got 0)","bad argument #1 to 'wait' (task expected, got table)"]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, func(o *Options) { o.Tools = newOverlapTools().tools() })
			got, err := r.Run(t.Context(), Request{Source: "local sync = mcp.sync\n" + test.source, Limits: Limits{Time: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Result) != test.want {
				t.Errorf("got %s, want %s", got.Result, test.want)
			}
		})
	}
}

func TestFailedItemCancelsTheOthers(t *testing.T) {
	t.Parallel()
	x := newOverlapTools()
	r := newRunner(t, func(o *Options) { o.Tools = x.tools() })
	source := `local function visit(v)
	if v == 3 then return mcp.sync.refuse{hanging = 2} end
	return mcp.sync.hang{}
end
local all = parallel.map({1, 2, 3, 4, 5}, visit, 3)`
	_, err := r.Run(t.Context(), Request{Source: source, Limits: Limits{Time: time.Minute}})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != ToolError || failure.Line != 2 {
		t.Fatalf("error %v", err)
	}
	if want := "sync.refuse: not_found: nothing there (item 3 of parallel.map)"; failure.Message != want {
		t.Errorf("message %q, want %q", failure.Message, want)
	}
	if !strings.Contains(failure.StackText(), "script:5") {
		t.Errorf("the stack does not lead to parallel.map:\n%s", failure.StackText())
	}
	if x.cancelled != 2 {
		t.Errorf("%d calls were cancelled, want 2", x.cancelled)
	}
}

func TestCancelStopsTasks(t *testing.T) {
	t.Parallel()
	x := newOverlapTools()
	r := newRunner(t, func(o *Options) { o.Tools = x.tools() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 4 {
			<-x.arrivals
		}
		cancel()
	}()
	_, err := r.Run(ctx, Request{Source: `pcall(parallel.map, {1, 2, 3, 4}, function() mcp.sync.hang{} end) while true do end`})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != Cancelled {
		t.Fatalf("error %v", err)
	}
	if x.cancelled != 4 {
		t.Errorf("%d calls were cancelled, want 4", x.cancelled)
	}
}

func TestTasksSleepTogether(t *testing.T) {
	t.Parallel()
	hours := clock.NewVirtual(time.Unix(0, 0))
	r := newRunner(t, func(o *Options) { o.Clock = hours })
	go func() {
		for range 2 {
			if hours.AwaitSleepers(t.Context(), 3) == nil {
				hours.Advance(time.Hour)
			}
		}
	}()
	got, err := r.Run(t.Context(), Request{Source: `
		parallel.map({1, 2, 3}, function() for _ = 1, 2 do clock.sleep(3600000) end end)
		return clock.now()`})
	if err != nil || string(got.Result) != "7200000" {
		t.Errorf("got %s, %v", got.Result, err)
	}
}

// journal records outcomes by number, or replays recorded ones.
type journal struct {
	replay bool

	mu        sync.Mutex
	storedRun map[int64][]host.Value
	said      []string
}

func (j *journal) Handle(ctx context.Context, e host.Effect, live func(context.Context) ([]host.Value, error)) ([]host.Value, error) {
	j.mu.Lock()
	j.said = append(j.said, fmt.Sprint(e.Seq, " ", e.Name, " ", e.Kind))
	values, ok := j.storedRun[e.Seq]
	j.mu.Unlock()
	if j.replay {
		if !ok {
			return nil, fault.New(fault.Internal, "%d was never recorded", e.Seq)
		}
		return values, nil
	}
	values, err := live(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.storedRun[e.Seq] = values
	return values, err
}

// TestParallelRunsReplay checks that the journal of a parallel run replays the same run,
// although the order of answers is not deterministic.
func TestParallelRunsReplay(t *testing.T) {
	t.Parallel()
	source := `local order = {}
		parallel.map({3, 1, 2}, function(v)
			mcp.sync.after{n = v, after = v - 1}
			order[#order + 1] = v
			mcp.sync.echo{v = v}
		end)
		return order`
	storedRun := &journal{storedRun: map[int64][]host.Value{}}
	r := newRunner(t, func(o *Options) { o.Tools = newOverlapTools().tools() })
	first, err := r.Run(t.Context(), Request{Source: source, Handler: storedRun})
	if err != nil || len(first.Result) != len("[1,2,3]") { // the order of answers varies
		t.Fatalf("got %s, %v", first.Result, err)
	}
	again := &journal{storedRun: storedRun.storedRun, replay: true}
	r = newRunner(t, func(o *Options) { o.Tools = toolbox{tool.Ref{Space: "sync", Name: "gone"}: nil} })
	second, err := r.Run(t.Context(), Request{Source: source, Handler: again})
	if err != nil || string(second.Result) != string(first.Result) {
		t.Fatalf("replayed as %s, %v", second.Result, err)
	}
	slices.Sort(storedRun.said)
	slices.Sort(again.said)
	if !slices.Equal(storedRun.said, again.said) {
		t.Errorf("asked %q\nthen  %q", storedRun.said, again.said)
	}
}
