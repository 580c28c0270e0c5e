package lua

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// runLimited runs code under a budget and returns the budget error it must end
// with. It checks that the state is usable afterwards.
func runLimited(t *testing.T, ctx context.Context, code string, b Budget) *BudgetError {
	t.Helper()
	s := newFullState(t, io.Discard)
	fn, err := s.Load(code, "=limited")
	if err != nil {
		t.Fatal(err)
	}
	s.SetBudget(b)
	_, err = s.Call(ctx, fn.Value())
	budget := new(BudgetError)
	if !errors.As(err, &budget) {
		t.Fatalf("%s: ended with %v", code, err)
	}
	s.SetBudget(Budget{})
	if vals, err := run(s, "return 1 + 1, swallowed", "=after"); err != nil || vals[0] != Int(2) || !vals[1].IsNil() {
		t.Errorf("%s: afterwards the state gives %v, %v", code, vals, err)
	}
	return budget
}

// TestNothingSwallowsBudgets tries everything that catches errors in Lua.
func TestNothingSwallowsBudgets(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"while true do end",
		"repeat until false",
		"::top:: goto top",
		"for i = 1, math.huge do end",
		"while true do pcall(function() while true do end end) swallowed = 1 end",
		"while true do xpcall(function() while true do end end, function() swallowed = 1 end) end",
		"coroutine.resume(coroutine.create(function() while true do end end)) swallowed = 1",
		"pcall(coroutine.wrap(function() while true do end end)) swallowed = 1",
		"local c <close> = setmetatable({}, {__close = function() swallowed = 1 end}) while true do end",
		"for k in function() return 1 end do end",
		"local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) pcall(function() return t.y end) swallowed = 1",
		"local t = setmetatable({}, {__eq = function(a, b) while true do end end}) pcall(function() return t == setmetatable({}, getmetatable(t)) end) swallowed = 1",
		"table.sort({3, 2, 1}, function() while true do end end)",
		"('x'):gsub('x', function() while true do end end)",
		"load(function() while true do end end)",
	} {
		e := runLimited(t, t.Context(), code, Budget{Steps: 100000})
		if e.Limit != LimitSteps || e.Used < e.Allowed {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

// TestStoppedLoopHasItsLine checks that the place of a loop that was stopped is in the loop.
func TestStoppedLoopHasItsLine(t *testing.T) {
	t.Parallel()
	for _, loop := range []string{
		"while true do end",
		"while x == 1 do\nend",
		"while true do x = x + 1 end",
		"repeat until false",
		"repeat until x == 2",
		"::top:: goto top",
		"for i = 1, math.huge do end",
		"for _ in function() return 1 end do end",
	} {
		e := runLimited(t, t.Context(), "x = 1\nprint(x)\n\n"+loop, Budget{Steps: 100000})
		if !strings.Contains(e.Traceback, "limited:4: in main chunk") {
			t.Errorf("%s: it was stopped at %s", loop, e.Traceback)
		}
	}
}

func TestMemoryIsMeasuredNotGuessed(t *testing.T) {
	t.Parallel()
	s := newFullState(t, io.Discard)
	s.SetBudget(Budget{Memory: 2 << 20})
	garbage := `local t for i = 1, 200000 do t = {i, tostring(i), function() return i end} end
		local s = '' for i = 1, 3000 do s = s .. 'x' end return #s`
	if _, err := run(s, garbage, "=garbage"); err != nil {
		t.Errorf("garbage counts: %v", err)
	}
	for _, code := range []string{
		"local t = {} while true do t[#t + 1] = {} end",
		"local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
		"local s = 'x' while true do s = s .. s end",
		"string.rep('x', 1e9)",
		"local t = {} while true do t[#t + 1] = coroutine.create(print) end",
		"local t = {} while true do t[#t + 1] = function() return t end end",
		"local function f() return 1 + f() end f()",
		"local function f(...) return f(1, ...) end f()",
		"table.concat({('x'):rep(1e6), ('y'):rep(1e6), ('z'):rep(1e6)})",
	} {
		if e := runLimited(t, t.Context(), "pcall(function() "+code+" end) swallowed = 1", Budget{Memory: 512 << 10}); e.Limit != LimitMemory {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

func TestDeadlineAndContext(t *testing.T) {
	t.Parallel()
	loop := "while true do pcall(string.rep, 'x', 10) end"
	if e := runLimited(t, t.Context(), loop, Budget{Deadline: time.Now().Add(time.Millisecond)}); e.Limit != LimitDeadline {
		t.Errorf("deadline: %+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newFullState(t, io.Discard)
	s.Globals().SetString("cancel", NewFunc("cancel", func(*Call) error { cancel(); return nil }).Value())
	_, err := func() ([]Value, error) {
		fn, err := s.Load("cancel() while true do end", "=c")
		if err != nil {
			return nil, err
		}
		return s.Call(ctx, fn.Value())
	}()
	if e := new(BudgetError); !errors.As(err, &e) || e.Limit != LimitContext || !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}
}

// TestStepsAreDeterministic: the same program uses the same steps.
func TestStepsAreDeterministic(t *testing.T) {
	t.Parallel()
	used := func() int64 {
		s := newFullState(t, io.Discard)
		s.SetBudget(Budget{Steps: 1 << 40})
		if _, err := run(s, "for i = 1, 1000 do local s = ('x'):rep(i) s:find('y') end", "=c"); err != nil {
			t.Fatal(err)
		}
		return s.Usage().Steps
	}
	if a, b := used(), used(); a != b || a < 1000 {
		t.Errorf("%d steps, then %d", a, b)
	}
}

// TestProtosAreShared runs one compiled chunk in states on several goroutines.
func TestProtosAreShared(t *testing.T) {
	t.Parallel()
	p, err := newFullState(t, io.Discard).Compile(`local o = {x = 0, y = 1}
		for i = 1, 2000 do o.x = o.x + i o.z = i % 2 == 0 and i or nil end
		return o.x, o.z, math.max(o.x, o.y)`, "=shared")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 4 {
		go func() {
			s := New(Options{})
			err := s.Open(Sandboxed()...)
			for i := 0; err == nil && i < 20; i++ {
				var vals []Value
				vals, err = s.Call(context.Background(), s.Instantiate(p, s.Globals().Value()).Value())
				if err == nil && (vals[0] != Int(2001000) || vals[1] != Int(2000) || vals[2] != Int(2001000)) {
					err = errors.New("wrong results")
				}
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
