package js

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestTimeoutTellsWhere(t *testing.T) {
	t.Parallel()
	p := program("let n = 0;\nfunction spin() {\n  while (true) n++;\n}\nspin()")
	p.Limits.Time = 20 * time.Millisecond
	_, err := shared.Run(t.Context(), p, testHost())
	if fault.CodeOf(err) != fault.Timeout || !strings.Contains(err.Error(), "script.js:3:") || fault.HintOf(err) == "" {
		t.Errorf("got %v, want a timeout at line 3 with a hint", err)
	}
	p = program("await Promise.all([mcp.slow.hang(), mcp.a.b()])")
	for p.Limits.Time = 20 * time.Millisecond; ; p.Limits.Time *= 4 { // until the other call was answered in time
		_, err = shared.Run(t.Context(), p, testHost())
		if fault.CodeOf(err) == fault.Timeout && strings.Contains(err.Error(), "(waiting for mcp.slow.hang)") {
			return
		}
		if p.Limits.Time > clocktest.Timeout {
			t.Fatalf("got %v, want a timeout that names the call", err)
		}
	}
}

// TestDeadlineOfTheCaller checks that a caller's deadline before the limit is a timeout too.
func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, source := range []string{"for (;;) {}", "await mcp.a.hang()"} {
		if _, err := shared.Run(ctx, program(source), testHost()); fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: got %v, want a timeout", source, err)
		}
	}
}

// TestCancel checks that cancelling stops a run in a loop, in native code and in a call.
func TestCancel(t *testing.T) {
	t.Parallel()
	why := errors.New("the user left")
	for name, source := range map[string]string{
		"script": "await mcp.a.b(); for (;;) {}",
		"native": "await mcp.a.b(); Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
		"call":   "await mcp.a.b(); await mcp.a.hang()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			host := testHost()
			call := host.OnCall
			host.OnCall = func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
				if name == "mcp.a.b" {
					cancel(why)
				}
				return call(ctx, name, args)
			}
			_, err := shared.Run(ctx, program(source), host)
			if fault.CodeOf(err) != fault.Cancelled || !errors.Is(err, why) {
				t.Errorf("got %v, want cancelled because %v", err, why)
			}
		})
	}
}

// TestHostIgnoresContext checks that a host that ignores its context delays neither the run
// nor anything else. Only Close waits for it.
func TestHostIgnoresContext(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	release := make(chan struct{})
	host := testHost()
	host.OnCall = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		<-release
		return nil, nil
	}
	host.OnSync = host.OnCall
	for _, source := range []string{"await mcp.a.b()", "echo()"} {
		p := program(source)
		p.Limits.Time = 10 * time.Millisecond
		if _, err := e.Run(t.Context(), p, host); fault.CodeOf(err) != fault.Timeout {
			t.Errorf("%s: got %v, want a timeout", source, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while calls are under way, want cancelled", err)
	}
	close(release)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		limits Limits
		want   string
	}{
		"calls":     {"for (let i = 0; i < 4; i++) await mcp.a.b()", Limits{Calls: 3, Time: time.Minute}, "Error: the script's limit of 3 calls is used up (script.js:1:41)"},
		"output":    {"'x'.repeat(100)", Limits{Output: 50, Time: time.Minute}, "read a value of the script: 102 bytes, at most 50 are allowed"},
		"memory":    {"const a = []; for (;;) a.push(new Array(1000).fill(0))", Limits{Memory: 8 << 20, Time: time.Minute}, "the script used more than its 8 MiB of memory: InternalError: out of memory"},
		"arguments": {"const s = 'x'.repeat(1e6); await Promise.all(Array.from({length: 20}, () => mcp.a.hang(s)))", Limits{Memory: 12 << 20, Time: time.Minute}, "Error: the arguments of calls in flight are more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program(c.source)
			p.Limits = c.limits
			_, err := shared.Run(t.Context(), p, testHost())
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestLinesBeforeAnError checks that a script that fails has written the lines before.
func TestLinesBeforeAnError(t *testing.T) {
	t.Parallel()
	p := program("console.log('before'); null.x")
	var lines []Line
	p.OnLine = func(l Line) { lines = append(lines, l) }
	if _, err := shared.Run(t.Context(), p, testHost()); err == nil || len(lines) != 1 || lines[0].Text != "before" {
		t.Errorf("got %v, %v", lines, err)
	}
}
