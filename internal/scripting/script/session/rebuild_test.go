package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/scripting/script/scripttest"
	"github.com/luanette/luanette/internal/store/db"
)

// counted is a tool that returns how often it was called.
func counted(calls *atomic.Int64) scripttest.Toolbox {
	return scripttest.Toolbox{tool.Ref{Space: "calc", Name: "next"}: func(context.Context, json.RawMessage) (any, error) {
		n := calls.Add(1)
		if n == 2 {
			return nil, fault.New(fault.Limit, "not two")
		}
		return map[string]any{"n": n}, nil
	}}
}

// otherBuild makes the snapshots of all sessions unreadable, as an upgrade of the engine
// does.
func (p sessionFixture) otherBuild(t *testing.T) {
	t.Helper()
	err := p.database.Write(t.Context(), func(tx *db.Tx) error {
		states, err := db.All(t.Context(), tx, func(row db.Scanner) (s struct {
			id    string
			state []byte
		}, err error,
		) {
			return s, row.Scan(&s.id, &s.state)
		}, "SELECT id, state FROM sessions WHERE state IS NOT NULL")
		for _, one := range states {
			one.state[10] ^= 0xff // a byte of the fingerprint
			if _, err := tx.Exec(t.Context(), "UPDATE sessions SET state = $1 WHERE id = $2", one.state, one.id); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// js runs a turn of script.JavaScript.
func (p sessionFixture) js(t *testing.T, ref, code string) string {
	t.Helper()
	done, err := p.Eval(t.Context(), "ada", ref, script.Request{Source: code, Language: script.JavaScript})
	if err != nil {
		return "error " + fmt.Sprint(fault.CodeOf(err)) + err.Error()
	}
	return string(done.Result)
}

// TestJavaScriptSessionsSurviveAnUpgrade checks that a session is rebuilt from its turns,
// without repeating what they did.
func TestJavaScriptSessionsSurviveAnUpgrade(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	p := openSessions(t, t.TempDir(), func(o *script.Options) { o.Tools = counted(&calls) }, Options{})
	p.js(t, "work", "let total = 0, when = Date.now(), luck = Math.random(); function add(n) { total += n; return total }")
	p.js(t, "work", "const first = (await mcp.calc.next({})).n; add(10)")
	p.js(t, "work", "add(5); await mcp.calc.next({})") // fails after it changed something
	p.js(t, "work", "function* count() { yield 1; yield 2; yield 3 }; const it = count(); it.next(); const third = (await Promise.all([mcp.calc.next({}), mcp.calc.next({})])).map((x) => x.n)")
	const look = "[total, first, third, when, luck, it.next().value]"
	forked, err := p.Fork(t.Context(), "ada", "work", "copy")
	if err != nil {
		t.Fatal(err)
	}
	want := p.js(t, forked.ID, look)
	if !strings.HasPrefix(want, "[15,1,[") || !strings.HasSuffix(want, ",2]") {
		t.Fatalf("before: %s", want)
	}
	p.otherBuild(t)
	if got := p.js(t, "work", look); got != want {
		t.Errorf("rebuilt %s, want %s", got, want)
	}
	if got := p.js(t, "work", "[add(1), it.next().value]"); got != "[16,3]" {
		t.Errorf("next turn %s", got)
	}
	if got := p.js(t, forked.ID, "[add(2), it.next().value]"); got != "[17,3]" {
		t.Errorf("the fork: %s", got)
	}
	if calls.Load() != 4 {
		t.Errorf("the tool was called %d times, want 4", calls.Load())
	}
	if _, err := p.Reset(t.Context(), "ada", "work"); err != nil {
		t.Fatal(err)
	}
	p.js(t, "work", "var fresh = typeof total")
	p.otherBuild(t)
	if got := p.js(t, "work", "fresh"); got != `"undefined"` {
		t.Errorf("after a reset: %s", got)
	}
}

// TestSessionWithoutTurnsIsNotRebuilt checks that a session whose turns are not all stored
// is refused rather than rebuilt in part, and that closing it leaves nothing.
func TestSessionWithoutTurnsIsNotRebuilt(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	p.js(t, "work", "var a = 1")
	p.js(t, "work", "var b = 2")
	err := p.database.Exec(t.Context(), "DELETE FROM session_turns WHERE version = 1")
	if err != nil {
		t.Fatal(err)
	}
	p.otherBuild(t)
	if got := p.js(t, "work", "b"); !strings.Contains(got, "error conflict") {
		t.Errorf("got %s", got)
	}
	if err := p.Close(t.Context(), "ada", "work"); err != nil {
		t.Fatal(err)
	}
	var left int
	err = p.database.QueryRow(t.Context(), "SELECT count(*) FROM session_turns").Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d turns are left, %v", left, err)
	}
}
