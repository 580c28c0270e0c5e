package lua

import (
	"errors"
	"strings"
	"testing"
)

// A function the host wrote in Lua leaves its caller on the stack, even in a
// tail call; a script's own does not.
func TestHostedFunctionsKeepTheirCaller(t *testing.T) {
	t.Parallel()
	for chunk, want := range map[string]string{
		"=[prelude]": "test:3: no",
		"=plain":     "test:5: no",
	} {
		s := newFullState(t, nil)
		if _, err := run(s, `
			function check(v) if not v then error("no", 2) end return "fine", v end
			function twice(v) return check(v) end`, chunk); err != nil {
			t.Fatal(err)
		}
		values, err := run(s, "local function f(v)\n  local a = 1\n  return check(v)\nend\nreturn f(7)", "=test")
		if err != nil || len(values) != 2 || values[0].String() != "fine" || values[1].String() != "7" {
			t.Errorf("%s: got %v, %v", chunk, values, err)
		}
		_, err = run(s, "local function f(v)\n  local a = 1\n  return check(v)\nend\nlocal x = f()", "=test")
		var raised *Error
		if !errors.As(err, &raised) || raised.Value.String() != want {
			t.Errorf("%s: error %v, want %q", chunk, err, want)
		}
		if values, err = run(s, "return twice(1)", "=test"); err != nil || len(values) != 2 {
			t.Errorf("%s: nested: got %v, %v", chunk, values, err)
		}
	}
	s := newFullState(t, nil)
	if _, err := run(s, "function down(n) if n == 0 then return 'deep' end return down(n - 1) end", "=plain"); err != nil {
		t.Fatal(err)
	}
	if values, err := run(s, "return down(1000000)", "=test"); err != nil || strings.TrimSpace(values[0].String()) != "deep" {
		t.Errorf("tail calls of scripts: %v", err)
	}
}
