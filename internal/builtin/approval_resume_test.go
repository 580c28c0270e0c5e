package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
)

// late is a clock some time ahead of the machine's.
type late struct {
	clock.Clock
	by time.Duration
}

func (l late) Now() time.Time { return l.Clock.Now().Add(l.by) }

// approveAndCrash approves the run and waits until it blocks in the bank, where the
// process stays. The result of the dead process arrives when the bank is released.
func (s *stage) approveAndCrash(t *testing.T, code, session string) (id string, answer <-chan string) {
	t.Helper()
	id = s.eval(t, code, session).Approval.ID
	s.bank.hold() // making the plan calls the read-only tools
	said := make(chan string, 1)
	dying := s.toolFixture
	go func() {
		view, err := dying.call(t, "approval_decide", `{"approval_id":"`+id+`","decision":"allow"}`)
		said <- fmt.Sprint(view.Text(), err)
	}()
	<-s.bank.wait
	clocktest.Await(t, func() bool { return s.records(t, id) >= 2 }) // the call and its outcome
	return id, said
}

// records returns the number of journal records of a run.
func (s *stage) records(t *testing.T, id string) (n int) {
	t.Helper()
	err := s.database.QueryRow(t.Context(), `SELECT count(*) FROM approval_records WHERE approval = $1`, id).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// nextProcess opens everything again when the dead process has been silent long
// enough, lets it find the unfinished run, and waits for that.
func (s *stage) nextProcess(t *testing.T) {
	t.Helper()
	s.clock = late{clock.Real(), time.Minute}
	s.reopen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.approvals.Watch(ctx, func(ctx context.Context, a approval.Approval) {
		defer cancel()
		if _, err := s.sessions.Resume(ctx, a.ID, a.RunInfo, a.Resume, script.Request{}); err != nil {
			t.Error(err)
		}
	})
}

// outcome returns the outcome of a run, as approval_status reports it.
func (s *stage) outcome(t *testing.T, id string) (o script.ResumeResult) {
	t.Helper()
	var shown struct{ Outcome json.RawMessage }
	s.mustCall(t, "approval_status", `{"approval_id":"`+id+`"}`, &shown)
	if err := json.Unmarshal(shown.Outcome, &o); err != nil {
		t.Fatalf("outcome %q: %v", shown.Outcome, err)
	}
	return o
}

// TestAnApprovedScriptSurvives checks that a script that continues after its approval
// survives the process: its effects do not run again, and the process taken for dead
// does nothing more.
func TestAnApprovedScriptSurvives(t *testing.T) {
	t.Parallel()
	for _, inSession := range []bool{false, true} {
		s := approving(t, payments)
		session := ""
		if inSession {
			session = s.begin(t)
		}
		id, died := s.approveAndCrash(t, `n = 1 mcp.bank.pay { to = "a" } mcp.bank.look { to = "hold" } mcp.bank.pay { to = "b" } n = n + 1 return n`, session)
		s.nextProcess(t)
		if o := s.outcome(t, id); o.Error != nil || string(o.Result) != "2" {
			t.Errorf("outcome %+v, %v", o, o.Error)
		}
		s.bank.letGo()
		if said := <-died; !strings.Contains(said, "another process continues the run") {
			t.Errorf("the first process returned %s", said)
		}
		if got := fmt.Sprint(s.bank.payments()); got != "[a b]" {
			t.Errorf("paid %s", got)
		}
		if inSession && s.inSession(t, session, "n") != "2" {
			t.Error("the session does not have what the turn left")
		}
	}
}

// TestAnApprovedCallInDoubt checks that a call in flight at a crash is in doubt, as in a job.
func TestAnApprovedCallInDoubt(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	id, died := s.approveAndCrash(t, `mcp.bank.pay { to = "a" } mcp.bank.pay { to = "hold" }`, "")
	s.nextProcess(t)
	if o := s.outcome(t, id); o.Error == nil || !strings.Contains(o.Error.Message, `it is unknown whether bank.pay({"to":"hold"})`) {
		t.Errorf("continued: %+v", o)
	}
	s.bank.letGo()
	<-died
	if got := fmt.Sprint(s.bank.payments()); got != "[a hold]" {
		t.Errorf("paid %s", got)
	}
}

// TestAnApprovedTurnRunsOnce checks that a turn whose session was saved does not
// run again if only its result was lost.
func TestAnApprovedTurnRunsOnce(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	session := s.begin(t)
	id := s.eval(t, `n = (n or 0) + 1 mcp.bank.pay { to = "a" }`, session).Approval.ID
	a, err := s.approvals.Get(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	s.decide(t, id, "allow", "")
	err = s.database.Write(t.Context(), func(tx *db.Tx) error { // as if the process had died before it stored the result
		_, err := tx.Exec(t.Context(), `UPDATE approvals SET outcome = NULL, kept = $2 WHERE id = $1`, id, a.Resume)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.nextProcess(t)
	if o := s.outcome(t, id); o.Error != nil || len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "its result is lost") {
		t.Errorf("resumed: %+v", o)
	}
	if got := s.inSession(t, session, "n"); got != "1" || len(s.bank.payments()) != 1 {
		t.Errorf("n = %s, paid %q", got, s.bank.payments())
	}
}

// TestAnApprovedScriptKeepsItsRights checks that a run continues with the rights of
// its owner, not of the approver.
func TestAnApprovedScriptKeepsItsRights(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	web := principal.With(t.Context(), principal.Principal{ID: "key:web", Name: "web", Scopes: []principal.Scope{principal.MCP}})
	result, err := s.catalog.Call(web, tool.Call{Ref: tool.Ref{Name: "lua_eval"}, Args: json.RawMessage(`{"code":"mcp.bank.pay { to = 'a' }"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var waits answered
	if view, err := result.View(); err != nil || json.Unmarshal(view.Structured, &waits) != nil || waits.Approval == nil {
		t.Fatalf("answered %s, %v", result.Raw, err)
	}
	if err := s.approvals.Answer(t.Context(), waits.Approval.ID, host.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	s.nextProcess(t)
	if got := fmt.Sprint(s.bank.payments(), s.bank.by); got != "[a] [key:web]" {
		t.Errorf("paid %s", got)
	}
}

// TestAnsweredRunsAreFinished checks that a run approved by an elicitation survives as well.
func TestAnsweredRunsAreFinished(t *testing.T) {
	t.Parallel()
	s := approving(t, payments)
	caller := &tool.Caller{ID: "client", Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: func(context.Context, []tool.Question) ([]json.RawMessage, error) {
		return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"decision":"allow"}}`)}, nil
	}}
	_, err := s.catalog.Call(t.Context(), tool.Call{
		Ref: tool.Ref{Name: "lua_eval"}, Args: json.RawMessage(`{"code":"return mcp.bank.pay { to = 'a' }.receipt"}`), Caller: caller,
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.approvals.List(t.Context(), "", "", 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("approvals %+v, %v", all, err)
	}
	if o := s.outcome(t, all[0].ID); string(o.Result) != `"R-a"` || all[0].Resume != nil {
		t.Errorf("stored as %+v", o)
	}
}
