package lua

import (
	"errors"
	"strings"
	"testing"
)

// ask yields its arguments, and when resumed raises an error, yields again or
// returns, by its argument.
func ask(c *Call) error {
	if !c.Resumed() {
		if !c.Yieldable() {
			return c.Return(String("blocked"))
		}
		return c.Yield(c.Args()...)
	}
	switch word, _ := c.Arg(1).AsString(); word {
	case "raise":
		return &Error{Value: String("refused"), Cause: errBroken}
	case "again":
		return c.Yield(String("again?"))
	}
	return c.Return(c.Args()...)
}

var errBroken = errors.New("broken")

func TestHostFunctionsYield(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, source, want string }{
		{"resumed with results", `
			local co = coroutine.create(function(x) local a, b = ask(x, "q") return a, b, "end" end)
			local _, x, q = coroutine.resume(co, 1)
			return x, q, select(2, coroutine.resume(co, "a", "b"))`, "1 q a b end"},
		{"with fewer results than wanted", `
			local co = coroutine.wrap(function() local a, b = ask() return tostring(a), tostring(b) end)
			co()
			return co()`, "nil nil"},
		{"asking again", `
			local co = coroutine.wrap(function() return ask(1) end)
			return co(), co("again"), co("done")`, "1 again? done"},
		{"raising where it was called", `
			local co = coroutine.wrap(function() return pcall(ask, 1) end)
			co()
			return co("raise")`, "false refused"},
		{"in a method call and an operator", `
			local t = setmetatable({}, {__add = function() return ask("add") end, __index = function(_, k) return ask(k) end})
			local co = coroutine.wrap(function() local v = t + 1; return v .. t.key end)
			return co(), co("sum"), co("field")`, "add key sumfield"},
		{"not in the main thread", `return ask()`, "blocked"},
		{"not below a callback", `
			local co = coroutine.wrap(function() return (string.gsub("x", "x", function() return ask() end)) end)
			return co()`, "blocked"},
		{"many at once", `
			local all, sum = {}, 0
			for i = 1, 100 do all[i] = coroutine.wrap(function() return ask(i) end) end
			for i = 1, 100 do all[i]() end
			for i = 100, 1, -1 do sum = sum + all[i](i) end
			return sum`, "5050"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newFullState(t, nil)
			s.Globals().SetString("ask", NewFunc("ask", ask).Value())
			values, err := run(s, test.source, "=test")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range values {
				got = append(got, v.String())
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

func TestFailureOfACoroutine(t *testing.T) {
	t.Parallel()
	s := newFullState(t, nil)
	s.Globals().SetString("ask", NewFunc("ask", ask).Value())
	values, err := run(s, `
		local function inner() local x = ask() return x end
		local co = coroutine.create(function() local x = inner() return x end)
		coroutine.resume(co)
		coroutine.resume(co, "raise")
		return co`, "=test")
	if err != nil {
		t.Fatal(err)
	}
	co, _ := values[0].AsThread()
	failure := co.Failure()
	if failure == nil || !errors.Is(failure.Cause, errBroken) || !strings.Contains(failure.Traceback, "test:2: in upvalue 'inner'") {
		t.Errorf("failure = %+v", failure)
	}
	if idle := newThread(s); idle.Failure() != nil {
		t.Error("a coroutine that did not fail has a failure")
	}
}
