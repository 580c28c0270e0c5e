package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/script"
)

// approving returns a stage on which the bank's payments need approval.
func approving(t *testing.T, rules map[string]approval.Mode) *stage {
	t.Helper()
	return openStageWith(t, approval.Policy{Rules: rules})
}

var payments = map[string]approval.Mode{"bank": approval.Writes}

// answered holds the fields of lua_eval and approval_decide results that tests use.
type answered struct {
	Status   string
	Result   json.RawMessage
	Approval *struct {
		ID   string `json:"approval_id"`
		Plan []struct{ Action string }
	}
	Outcome *struct {
		Result   json.RawMessage
		Error    *struct{ Message string }
		Output   []struct{ Text string }
		Approval *struct {
			ID string `json:"approval_id"`
		}
	}
}

// eval runs code that must pause, and returns the approval's id.
func (s *stage) eval(t *testing.T, code, session string) answered {
	t.Helper()
	args := map[string]string{"code": code}
	if session != "" {
		args["session_id"] = session
	}
	raw, _ := json.Marshal(args)
	var out answered
	s.mustCall(t, "lua_eval", string(raw), &out)
	return out
}

func (s *stage) decide(t *testing.T, id, decision, remember string) answered {
	t.Helper()
	args := map[string]string{"approval_id": id, "decision": decision}
	if remember != "" {
		args["remember"] = remember
	}
	raw, _ := json.Marshal(args)
	var out answered
	s.mustCall(t, "approval_decide", string(raw), &out)
	return out
}

func TestScriptWaitsForApprovalAndContinues(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	file := s.folder + "/log"
	code := `fs.append("` + file + `", "begun ") print("so far")
		local first = mcp.bank.pay { to = "a" }.receipt
		print("paid")
		mcp.bank.pay { to = "b" }
		fs.append("` + file + `", "ended") return first`
	waits := s.eval(t, code, "")
	if waits.Status != script.StatusWaiting || waits.Approval == nil || len(waits.Approval.Plan) != 3 || waits.Approval.Plan[0].Action != "call bank.pay" {
		t.Fatalf("answered %+v", waits)
	}
	if paid := s.bank.payments(); len(paid) > 0 {
		t.Fatalf("paid %q before the approval", paid)
	}
	if got := s.read(t, file); got != "begun " {
		t.Fatalf("the file holds %q", got)
	}
	list := s.mustCall(t, "approval_list", `{}`, nil).Text()
	shown := s.mustCall(t, "approval_status", `{"approval_id":"`+waits.Approval.ID+`"}`, nil).Text()
	if !strings.Contains(list, waits.Approval.ID) || !strings.Contains(shown, `1. would call bank.pay {"to":"a"}`) || !strings.Contains(shown, "Output so far:\n  so far") || strings.Contains(shown, "Output so far:\n  so far\n  paid") {
		t.Errorf("list: %s\nshown: %s", list, shown)
	}

	done := s.decide(t, waits.Approval.ID, "allow", "")
	if done.Outcome == nil || string(done.Outcome.Result) != `"R-a"` || len(done.Outcome.Output) != 2 {
		t.Fatalf("decided: %+v", done.Outcome)
	}
	if got := fmt.Sprint(s.bank.payments()); got != "[a b]" { // the whole plan was allowed
		t.Errorf("paid %s", got)
	}
	if got := s.read(t, file); got != "begun ended" {
		t.Errorf("the file holds %q: something was done twice", got)
	}
	if view, err := s.call(t, "approval_decide", `{"approval_id":"`+waits.Approval.ID+`","decision":"deny"}`); err != nil || !view.IsError {
		t.Errorf("decided twice: %v %s", err, view.Text())
	}
}

// TestOnlyThePlanIsApproved checks that an effect that differs from the plan needs
// another approval.
func TestOnlyThePlanIsApproved(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	waits := s.eval(t, `mcp.bank.pay { to = mcp.bank.pay { to = "a" }.receipt }`, "")
	again := s.decide(t, waits.Approval.ID, "allow", "").Outcome
	if again == nil || again.Approval == nil || fmt.Sprint(s.bank.payments()) != "[a]" {
		t.Fatalf("continued: %+v, paid %q", again, s.bank.payments())
	}
	if last := s.decide(t, again.Approval.ID, "allow", ""); last.Outcome == nil || last.Outcome.Error != nil || fmt.Sprint(s.bank.payments()) != "[a R-a]" {
		t.Errorf("continued: %+v, paid %q", last.Outcome, s.bank.payments())
	}
}

func TestScriptCanCatchADenial(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	waits := s.eval(t, `local ok, why = pcall(mcp.bank.pay, { to = "a" }) return ok, tostring(why)`, "")
	done := s.decide(t, waits.Approval.ID, "deny", "tool").Outcome
	if done == nil || string(done.Result) != `[false,"bank.pay was not approved"]` || len(s.bank.payments()) > 0 {
		t.Fatalf("continued: %+v, paid %q", done, s.bank.payments())
	}
	if now := s.eval(t, `return (pcall(mcp.bank.pay, { to = "b" }))`, ""); string(now.Result) != "false" {
		t.Errorf("not remembered: %+v", now)
	}
	var list approvaltools.ApprovalList
	s.mustCall(t, "approval_list", `{"status":"any"}`, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Status != "denied" || len(list.Remembered) != 1 || list.Remembered[0].Subject != "bank.pay" {
		t.Fatalf("list %+v", list)
	}
	s.mustCall(t, "approval_forget", `{"id":"`+list.Remembered[0].ID+`"}`, nil)
	if now := s.eval(t, `mcp.bank.pay { to = "b" }`, ""); now.Status != script.StatusWaiting {
		t.Errorf("not forgotten: %+v", now)
	}
}

func TestRememberedScopes(t *testing.T) {
	t.Parallel()
	for scope, goesOn := range map[string][2]bool{"tool": {true, true}, "namespace": {true, true}, "script": {true, false}} {
		s := approving(t, payments)
		const code = `return mcp.bank.pay { to = "a" }.receipt`
		s.decide(t, s.eval(t, code, "").Approval.ID, "allow", scope)
		same, other := s.eval(t, code, ""), s.eval(t, code+" -- another", "")
		if (same.Status == "") != goesOn[0] || (other.Status == "") != goesOn[1] {
			t.Errorf("%s: the same %+v, another %+v", scope, same, other)
		}
	}
}

// TestTurnWaitsForApproval checks that a paused turn runs when it is approved, unless
// the session changed meanwhile.
func TestTurnWaitsForApproval(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	id := s.begin(t)
	s.inSession(t, id, "x = 1")
	const code = `x = x + 1 local r = mcp.bank.pay { to = "a" }.receipt x = x * 10 return r`
	waits := s.eval(t, code, id)
	if waits.Status != script.StatusWaiting {
		t.Fatalf("answered %+v", waits)
	}
	if got := s.inSession(t, id, "x"); got != "1" {
		t.Errorf("x = %s while the turn waits", got)
	}
	if done := s.decide(t, waits.Approval.ID, "allow", "").Outcome; done == nil || string(done.Result) != `"R-a"` {
		t.Errorf("continued: %+v", done)
	}
	if got := s.inSession(t, id, "x"); got != "20" {
		t.Errorf("x = %s after it", got)
	}
	waits = s.eval(t, code, id)
	s.inSession(t, id, "x = 5")
	if done := s.decide(t, waits.Approval.ID, "allow", "").Outcome; done == nil || done.Error == nil || !strings.Contains(done.Error.Message, "was changed while") {
		t.Errorf("the session has changed: %+v", done)
	}
	if got := s.inSession(t, id, "x"); got != "5" || len(s.bank.payments()) != 1 {
		t.Errorf("x = %s, paid %q", got, s.bank.payments())
	}
}

// TestApprovalCannotBeBypassed checks that a script waits at the tool however it
// calls it, and cannot approve itself.
func TestApprovalCannotBeBypassed(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	publishScript(t, s, `function describe() return { name = "helper", description = "Pays.", annotations = { read_only = true } } end
		function main(p) return mcp.bank.pay { to = "helper" } end`)
	id := s.begin(t)
	for _, code := range []string{
		`mcp.bank.pay { to = "x" }`,
		`mcp.call("bank", "pay", { to = "x" })`,
		`mcp.call_tool { name = "bank.pay", arguments = { to = "x" } }`,
		`mcp.call_tool { name = "mcp.bank.pay", arguments = { to = "x" } }`,
		`mcp.call_tool { name = "helper" }`,
		`mcp.helper { }`,
		`mcp.lua_eval { code = "mcp.bank.pay { to = 'x' }" }`,
		`mcp.lua_eval { code = "y = 1 mcp.bank.pay { to = 'x' } y = 2", session_id = "` + id + `" }`,
		`parallel.map({ 1, 2 }, function() return mcp.bank.pay { to = "x" } end)`,
		`coroutine.wrap(function() pcall(mcp.bank.pay, { to = "x" }) end)()`,
	} {
		if waits := s.eval(t, code, ""); waits.Status != script.StatusWaiting {
			t.Errorf("%s: %+v", code, waits)
		}
	}
	if view := s.mustCall(t, "helper", `{}`, nil); !strings.Contains(view.Text(), "Waiting for approval") {
		t.Errorf("called directly: %s", view.Text())
	}
	waits := s.eval(t, `mcp.bank.pay { to = "x" }`, "")
	if out := s.eval(t, `return (pcall(mcp.approval_decide, { approval_id = "`+waits.Approval.ID+`", decision = "allow" }))`, ""); string(out.Result) != "false" {
		t.Errorf("a script approved itself: %+v", out)
	}
	if view, err := s.call(t, "lua_eval", `{"code":"mcp.call_tool { name = 'pay', arguments = { to = 'x' } }"}`); err != nil || !view.IsError {
		t.Errorf("by an ambiguous name: %v %s", err, view.Text())
	}
	if paid := s.bank.payments(); len(paid) > 0 {
		t.Errorf("paid %q", paid)
	}
	if got := s.inSession(t, id, "y"); got != "null" {
		t.Errorf("the session of the waiting turn has y = %s", got)
	}
}

// TestNestedScriptResumes checks that a nested script resumes where it paused: its
// effects do not run again.
func TestNestedScriptResumes(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	file := s.folder + "/log"
	publishScript(t, s, `function describe() return { name = "helper", description = "Pays." } end
		function main(p) fs.append("`+file+`", "h") local r = mcp.bank.pay { to = "within" } fs.append("`+file+`", "H") return r end`)
	waits := s.eval(t, `fs.append("`+file+`", "a") local r = mcp.helper { }.receipt fs.append("`+file+`", "z") return r`, "")
	if got := s.read(t, file); got != "ah" {
		t.Fatalf("before: %q", got)
	}
	done := s.decide(t, waits.Approval.ID, "allow", "").Outcome
	if got := s.read(t, file); got != "ahHz" || done == nil || string(done.Result) != `"R-within"` || fmt.Sprint(s.bank.payments()) != "[within]" {
		t.Errorf("after: %q, %+v, paid %q", got, done, s.bank.payments())
	}
}

// TestTheCallerIsAsked checks that a caller that supports elicitation is asked, and that the
// call continues with its answer. A cancelled elicitation leaves the approval open.
func TestTheCallerIsAsked(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	var asked []string
	call := func(reply string) tool.View {
		caller := &tool.Caller{ID: "client", Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: func(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
			asked = append(asked, questions[0].Method+" "+string(questions[0].Params))
			return []json.RawMessage{json.RawMessage(reply)}, nil
		}}
		result, err := s.catalog.Call(t.Context(), tool.Call{
			Ref: tool.Ref{Name: "lua_eval"}, Args: json.RawMessage(`{"code":"local ok, r = pcall(mcp.bank.pay, { to = 'a' }) return ok and r.receipt or r"}`), Caller: caller,
		})
		if err != nil {
			t.Fatal(err)
		}
		view, err := result.View()
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	for _, c := range []struct{ reply, want string }{
		{`{"action":"decline"}`, "bank.pay was not approved"},
		{`{"action":"accept","content":{"decision":"deny"}}`, "bank.pay was not approved"},
		{`{"action":"cancel"}`, "Waiting for approval"},
		{`{"action":"accept","content":{"decision":"allow","remember":"no"}}`, "R-a"},
		{`{"action":"accept","content":{"decision":"allow","remember":"tool"}}`, "R-a"},
		{`{"action":"decline"}`, "R-a"}, // no question is open any more
	} {
		if view := call(c.reply); !strings.Contains(view.Text(), c.want) {
			t.Errorf("%s: %s, want %s", c.reply, view.Text(), c.want)
		}
	}
	if len(asked) != 5 || !strings.HasPrefix(asked[0], "elicitation/create") || !strings.Contains(asked[0], `would call bank.pay`) || len(s.bank.payments()) != 3 {
		t.Errorf("asked %d times, first %s; paid %q", len(asked), asked[0], s.bank.payments())
	}
}

// TestApprovalsSurviveARestart checks that pending approvals exist after a restart
// and can be decided then.
func TestApprovalsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	id := s.begin(t)
	file := s.folder + "/log"
	waits := s.eval(t, `fs.append("`+file+`", "once") n = 1 mcp.bank.pay { to = "a" } n = n + 1 return n`, id)
	s.reopen(t)
	if done := s.decide(t, waits.Approval.ID, "allow", "").Outcome; done == nil || string(done.Result) != "2" {
		t.Errorf("continued: %+v", done)
	}
	if got := s.read(t, file); got != "once" || fmt.Sprint(s.bank.payments()) != "[a]" || s.inSession(t, id, "n") != "2" {
		t.Errorf("file %q, paid %q", got, s.bank.payments())
	}
}

func TestReadsNeedApprovalIfEverythingDoes(t *testing.T) {
	t.Parallel()
	s := openStageWith(t, approval.Policy{Default: approval.Never, Rules: map[string]approval.Mode{
		"bank": approval.All, "bank.pay": approval.Never, "fs.write": approval.Writes,
	}})
	for code, waits := range map[string]bool{
		`mcp.bank.look { }`:                        true,
		`mcp.bank.pay { to = "a" }`:                false,
		`fs.write("` + s.folder + `/x", "1")`:      true,
		`fs.write(temp.path("x"), "1")`:            false, // the run's own
		`fs.append("` + s.folder + `/y", "1")`:     false,
		`return fs.read("` + s.folder + `/notes")`: false,
	} {
		if got := s.eval(t, code, ""); (got.Status != "") != waits {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// TestNobodyIsAskedAboutWhatCannotBeDone has effects that need approval and are refused in
// any case.
func TestNobodyIsAskedAboutWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	s := openStageWith(t, approval.Policy{Default: approval.Writes})
	for code, reason := range map[string]string{
		`write_file("/not/allowed", "1")`:              "scripts may not write here",
		`patch_file("/not/allowed", "--- a\n+++ b\n")`: "patch_file",
		`fs.write("` + s.folder + `", "1")`:            "is a directory",
		`mcp.call("bank", "pya", { })`:                 "no tool",
	} {
		raw, _ := json.Marshal(map[string]string{"code": code})
		if view, err := s.call(t, "lua_eval", string(raw)); err != nil || !view.IsError || !strings.Contains(view.Text(), reason) {
			t.Errorf("%s: %v %s", code, err, view.Text())
		}
	}
}
