package lua

import (
	"context"
	"testing"
)

// TestResumeFromGo resumes coroutines from Go.
func TestResumeFromGo(t *testing.T) {
	t.Parallel()
	s := sandbox(t, `
		local function body(...) local a = coroutine.yield(1, ...) local b = coroutine.yield(2, a) return 3, b end
		co, gen = coroutine.create(body), coroutine.wrap(body)
		bare = coroutine.wrap(coroutine.yield)
		meta = coroutine.wrap(function() return setmetatable({}, {__index = coroutine.yield}).x end)
		failing = coroutine.create(function() coroutine.yield() error("oops", 0) end)`)
	resume, _ := CoroutineLib.Function("resume")
	drive := func(fn Value, args ...Value) string {
		vals, err := s.Call(context.Background(), fn, args...)
		if err != nil {
			return err.Error()
		}
		text := ""
		for _, v := range vals {
			text += v.String() + " "
		}
		return text
	}
	co, gen, bare := s.Globals().GetString("co"), s.Globals().GetString("gen"), s.Globals().GetString("bare")
	failing := s.Globals().GetString("failing")
	for i, step := range []struct{ got, want string }{
		{drive(resume.Value(), co, String("x")), "true 1 x "},
		{drive(resume.Value(), co, String("y")), "true 2 y "},
		{drive(resume.Value(), co, String("z")), "true 3 z "},
		{drive(resume.Value(), co), "false cannot resume dead coroutine "},
		{drive(gen, Int(1), Int(2)), "1 1 2 "},
		{drive(gen), "2 nil "},
		{drive(gen), "3 nil "},
		{drive(gen), "cannot resume dead coroutine"},
		{drive(bare, Int(5)), "5 "},
		{drive(bare, Int(6)), "6 "},
		{drive(resume.Value(), failing), "true "},
		{drive(resume.Value(), failing), "false oops "},
	} {
		if step.got != step.want {
			t.Errorf("step %d: got %q, want %q", i+1, step.got, step.want)
		}
	}
	if got := drive(s.Globals().GetString("meta")); len(got) < 5 || got[:5] != "table" {
		t.Errorf("yield as a metamethod gives %q", got)
	}
	fn := NewFunc("test.drive", func(c *Call) error {
		vals, err := c.Call(c.Arg(1), c.Arg(2))
		if err != nil {
			return err
		}
		return c.Return(vals...)
	})
	if _, err := run(s, `again = coroutine.wrap(function(x) for i = 1, 3 do x = coroutine.yield(x) end end)`, "=again"); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Value{Int(1), Int(2)} {
		if got := drive(fn.Value(), s.Globals().GetString("again"), n); got != n.String()+" " {
			t.Errorf("through a host function: got %q", got)
		}
	}
}
