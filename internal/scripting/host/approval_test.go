package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// verdicts decides by the effect's display name. Other effects are allowed.
type verdicts map[string]Decision

func (v verdicts) Decide(_ context.Context, e Effect) (Decision, error) {
	return v[e.DisplayName()], nil
}

// memory stores records.
type memory struct{ records [][]byte }

func (m *memory) Record(data []byte) error {
	m.records = append(m.records, data)
	return nil
}

func records(stored *memory, journal *Journal) [][]byte {
	tail := journal.End()
	return append(stored.records, tail)
}

// play runs a small script with an Approval: three writes, whose results it prints. Results
// in past are taken from a journal.
func play(t *testing.T, approver Approver, past []Step) (said string, approval *Approval, steps []Step, done []string) {
	t.Helper()
	var stored memory
	journal := NewJournal(&stored, "boot")
	approval = NewApproval(journal, approver, nil)
	env := NewEnv(nil, NewReplay(past, approval), &Services{})
	tool := func(name string) string {
		f := &Func{Name: "call", Kind: Write, Effect: func(context.Context, *Services, Args) ([]Value, error) {
			done = append(done, name)
			return []Value{json.RawMessage(`"` + name + `"`)}, nil
		}}
		values, err := env.Call(t.Context(), "mcp", f, []Value{"git", name, json.RawMessage("{}")})
		if err != nil {
			return "(" + err.Error() + ")"
		}
		return fmt.Sprintf("%s", values[0])
	}
	said = strings.Join([]string{tool("a"), tool("b"), tool("c")}, " ")
	steps, err := ReadJournal(records(&stored, journal)...)
	if err != nil {
		t.Fatal(err)
	}
	return said, approval, append(past, steps...), done
}

// TestApprovalPausesAndResumes checks that nothing runs after the first effect that needs
// approval, and that the plan lists the rest. Run again with the decision, no effect repeats.
func TestApprovalPausesAndResumes(t *testing.T) {
	t.Parallel()
	said, approval, steps, done := play(t, verdicts{"git.b": Ask}, nil)
	paused := approval.Paused()
	if said != `"a" {} {}` || fmt.Sprint(done) != "[a]" || paused == nil || paused.DisplayName() != "git.b" {
		t.Fatalf("said %s, done %v, paused at %v", said, done, paused)
	}
	if got := PlanText(approval.Rehearsal().Plan()); got != "1. would call git.b {}\n2. would call git.c {}" {
		t.Errorf("plan: %s", got)
	}
	if len(steps) != 1 || !steps[0].Done {
		t.Fatalf("journal %+v", steps)
	}

	said, approval, _, done = play(t, verdicts{}, steps)
	if said != `"a" "b" "c"` || fmt.Sprint(done) != "[b c]" || approval.Paused() != nil {
		t.Errorf("allowed: said %s, done %v", said, done)
	}
	said, _, after, done := play(t, verdicts{"git.b": Deny}, steps)
	if said != `"a" (git.b was not approved) "c"` || fmt.Sprint(done) != "[c]" {
		t.Errorf("denied: said %s, done %v", said, done)
	}
	said, _, _, done = play(t, verdicts{}, after) // a denial is an outcome too
	if said != `"a" (git.b was not approved) "c"` || len(done) != 0 {
		t.Errorf("replayed: said %s, done %v", said, done)
	}
}

// TestApprovalOfNestedScripts checks that a script called by another passes the same Approval.
// The call has no outcome before the inner script has one.
func TestApprovalOfNestedScripts(t *testing.T) {
	t.Parallel()
	run := func(approver Approver, past []Step) (string, *Approval, []Step) {
		var stored memory
		journal := NewJournal(&stored, "boot")
		approval := NewApproval(journal, approver, nil)
		env := NewEnv(nil, NewReplay(past, approval), &Services{})
		made := 0
		write := &Func{Name: "call", Kind: Write, Effect: func(context.Context, *Services, Args) ([]Value, error) {
			made++
			return []Value{int64(made)}, nil
		}}
		inner := &Func{Name: "call", Kind: Nested, Effect: func(ctx context.Context, _ *Services, _ Args) ([]Value, error) {
			parent := ParentOf(ctx)
			if parent == nil {
				return nil, errors.New("unexpected effect")
			}
			nested := NewEnv(nil, parent.Handler, &Services{})
			nested.SetParent(parent)
			for _, name := range []string{"x", "y"} {
				if _, err := nested.Call(ctx, "mcp", write, []Value{"git", name}); err != nil {
					return nil, err
				}
			}
			return []Value{"inner is done"}, nil
		}}
		values, err := env.Call(t.Context(), "mcp", inner, []Value{"", "script"})
		steps, readErr := ReadJournal(records(&stored, journal)...)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		return fmt.Sprint(values, made), approval, append(past, steps...)
	}
	said, approval, steps := run(verdicts{"git.y": Ask}, nil)
	if said != "[inner is done] 1" || approval.Paused() == nil || len(steps) != 1 || !steps[0].Nested() {
		t.Fatalf("said %s, steps %+v", said, steps)
	}
	said, approval, steps = run(verdicts{}, steps)
	if said != "[inner is done] 1" || approval.Paused() != nil || len(steps) != 3 || steps[2].Kind != Nested {
		t.Errorf("said %s, steps %+v", said, steps)
	}
	offline := NewReplay(steps, nil)
	if said, _, _ = run(verdicts{"git.x": Deny, "git.y": Deny}, steps); said != "[inner is done] 0" || offline.Left() != 1 {
		t.Errorf("replayed: %s, %d steps", said, offline.Left())
	}
}

// TestRelayedToolNames checks that calling a tool through call_tool counts as calling
// the tool.
func TestRelayedToolNames(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Effect{
		"git.push":    {Name: "mcp.call", Args: []Value{"", "call_tool", json.RawMessage(`{"name":"git.push","arguments":{}}`)}},
		"lua_eval":    {Name: "mcp.call", Args: []Value{"", "lua_eval", json.RawMessage(`{}`)}},
		"fs.write":    {Name: "fs.write"},
		"run_command": {Name: "__run", Args: []Value{"git"}},
	} {
		if got := e.DisplayName(); got != want {
			t.Errorf("%v is called %s, want %s", e, got, want)
		}
	}
	if code := fault.CodeOf(denied(Effect{Name: "fs.write"})); code != fault.Denied {
		t.Errorf("denied is %s", code)
	}
}
