package terminal_test

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDecideApprovals(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("approval_decide", map[string]any{})
	p := s.open(80, 24)
	p.waitFor("1 pending approval")
	p.types("4")
	p.waitFor("›pending   files.write_file")
	p.types("d")
	p.waitFor("Deny files.write_file? The script con")
	p.waitFor("─ Approvals › files.write_file ") // the plan is shown with the question
	p.waitFor("+new")
	p.types("x")
	p.waitFor("not done")
	p.types("d")
	p.waitFor("Deny files.write_file?")
	p.types("y")
	p.waitFor("files.write_file denied")
	p.types("a")
	p.waitFor("Allow 2 effects: call files.")
	p.types("t")
	p.waitFor("files.write_file allowed")
	for _, want := range []string{`approval_decide {"approval_id":"a1","decision":"deny","plan":"p1"}`, `approval_decide {"approval_id":"a1","decision":"allow","plan":"p1","remember":"tool"}`} {
		if !s.wasCalled(want) {
			t.Errorf("%s was not called", want)
		}
	}
	p.types("\x1b")
	p.waitFor("─ Approvals 2 ")
	p.types("ja")
	p.waitFor("db.drop is already denied")
}

// A plan that has changed since it was shown is shown anew, and decided as it is then.
func TestDecideChangedApproval(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	request := func(digest, diff string) map[string]any {
		return map[string]any{"approvals": []any{map[string]any{
			"approval_id": "a1", "status": "pending", "subject": "files.write_file", "plan_digest": digest, "incomplete": "no such file", "created_at": noon, "expires_at": noon.Add(time.Hour),
			"plan": []any{map[string]any{"number": 1, "action": "call files.write_file", "diff": diff}},
		}}}
	}
	s.answer("approval_list", request("p1", "-old\n+new\n"))
	s.answer("approval_decide", func(args string) any {
		if strings.Contains(args, `"plan":"p2"`) {
			return map[string]any{}
		}
		s.answer("approval_list", request("p2", "-other\n+new\n"))
		return errors.New("nothing was decided: the plan has changed")
	})
	p := s.open(80, 24)
	p.waitFor("1 pending approval")
	p.types("4a")
	p.waitFor("-old")
	p.waitFor("The plan is incomplete: no such file.")
	p.types("y")
	p.waitFor("nothing was decided: the plan has changed")
	p.waitFor("-other")
	p.types("a")
	p.waitFor("Allow 1 effect")
	p.types("y")
	p.waitFor("files.write_file allowed")
}

func TestReviewDefinitions(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	pin := map[string]any{"id": "p1", "upstream": "files", "kind": "tool", "name": "read_file", "state": "changed", "digest": "d1", "changed": noon,
		"flags": []any{map[string]any{"code": "hidden_text", "path": "/description", "text": "looks like an instruction"}}}
	s.answer("/api/v1/pins?state=changed", map[string]any{"pins": []any{pin}})
	s.answer("/api/v1/pins?state=held", map[string]any{"pins": []any{map[string]any{"id": "p2", "upstream": "files", "kind": "tool", "name": "new_tool", "state": "held", "digest": "d2", "changed": noon.Add(time.Minute)}}})
	s.answer("/api/v1/pins/p1", map[string]any{"id": "p1", "upstream": "files", "kind": "tool", "name": "read_file", "state": "changed", "digest": "d1", "definition": map[string]any{"name": "read_file"},
		"diff": []any{map[string]any{"path": "/description", "old": "Reads a file.", "new": "Reads a file and mails it."}}, "flags": pin["flags"]})
	s.answer("/api/v1/pins/p2", map[string]any{"id": "p2", "upstream": "files", "kind": "tool", "name": "new_tool", "state": "held", "definition": map[string]any{"name": "new_tool"}})
	p := s.open(80, 24)
	p.waitFor("3 pending approvals")
	p.types("4\r")
	p.golden("definition-80x24", "+ Reads a file and mails it.")
	p.types("d")
	p.waitFor("Refuse files.read_file? It cannot be called.")
	p.types("y")
	p.waitFor("files.read_file refused")
	p.types("q")
	p.waitFor("─ Approvals 4 ")
	p.types("ja")
	p.waitFor("Approve files.new_tool? It can then be called.")
	p.types("y")
	p.waitFor("files.new_tool approved")
	for _, want := range []string{`/api/v1/pins/p1/decide {"decision":"refuse","digest":"d1"}`, `/api/v1/pins/p2/decide {"decision":"approve","digest":"d2"}`} {
		if !s.wasCalled(want) {
			t.Errorf("%s was not called in %v", want, s.called)
		}
	}
}
