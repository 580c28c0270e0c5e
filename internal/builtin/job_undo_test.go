package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// undoFixture has jobs whose payments are undone by paying to the receipt.
type undoFixture struct {
	*stage
	queue *job.Queue
	asked []string // the questions
}

func openUndo(t *testing.T) *undoFixture {
	t.Helper()
	s := openStageWith(t, approval.Policy{})
	queue, err := job.Open(context.Background(), s.database, asJobs{s.runner}, job.Options{
		Approvals: s.approvals, Tools: s.catalog, Revert: func(ref tool.Ref) (tool.Revert, bool) {
			return tool.Revert{Tool: "pay", Arguments: json.RawMessage(`{"to":"$result/receipt"}`)}, ref.Name == "pay"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
	})
	return &undoFixture{stage: s, queue: queue}
}

// run runs a script as a job and returns its id.
func (f *undoFixture) run(t *testing.T, code string) string {
	t.Helper()
	j, err := f.queue.Submit(t.Context(), job.Spec{Source: "function main() " + code + " end"})
	if err != nil {
		t.Fatal(err)
	}
	if done, _, err := f.queue.Poll(t.Context(), []string{j.ID}, time.Minute, true); err != nil || len(done) != 1 || done[0].State != job.Complete {
		t.Fatalf("%+v, %v", done, err)
	}
	return j.ID
}

// undo calls job_undo as a client whose user gives an answer; "" is a client that cannot
// be asked.
func (f *undoFixture) undo(t *testing.T, id, answer string) jobtools.Undone {
	t.Helper()
	caller := &tool.Caller{ID: "client"}
	if answer != "" {
		caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		caller.Ask = func(_ context.Context, questions []tool.Question) ([]json.RawMessage, error) {
			f.asked = append(f.asked, string(questions[0].Params))
			return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"decision":"` + answer + `","remember":"tool"}}`)}, nil
		}
	}
	set := toolset.NewSet("", jobtools.Tools(f.queue, f.scripts, f.runner))
	result, err := set.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "job_undo"}, Args: json.RawMessage(`{"job_id":"` + id + `"}`), Caller: caller})
	if err != nil {
		t.Fatal(err)
	}
	view, err := result.View()
	var out jobtools.Undone
	if err != nil || view.IsError || json.Unmarshal(view.Structured, &out) != nil {
		t.Fatalf("%s, %v", view.Text(), err)
	}
	return out
}

// A person is asked before anything is undone; a denial can be followed by another
// question, and what is undone stays so.
func TestUndoAsks(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	id := f.run(t, `mcp.bank.pay { to = "a" } mcp.bank.look {} fs.write("`+f.folder+`/x", "1") mcp.call_tool { name = "bank.pay", arguments = { to = "b" } }`)
	if out := f.undo(t, id, "deny"); out.Status != "denied" || out.UndoJobID != "" {
		t.Errorf("denied: %+v", out)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a b]" {
		t.Errorf("after a denial: %s", got)
	}
	out := f.undo(t, id, "allow")
	if out.Status != "complete" || len(out.Steps) != 3 || out.Steps[1].Problem != "only calls of tools can be undone" || string(out.Steps[2].Arguments) != `{"to":"R-a"}` {
		t.Errorf("allowed: %+v", out)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a b R-b R-a]" {
		t.Errorf("after the permission: %s", got)
	}
	if len(f.asked) != 2 || !strings.Contains(f.asked[1], `1. would call bank.pay {\"to\":\"R-b\"}\n2. would call bank.pay`) {
		t.Errorf("asked %q", f.asked)
	}
	if out := f.undo(t, id, "allow"); out.Status != "nothing" || len(out.Steps) != 1 {
		t.Errorf("undone again: %+v", out)
	}
	// The undo is a job too, and a remembered permission does not replace the question.
	if again := f.undo(t, out.UndoJobID, "allow"); again.Status != "complete" || len(f.asked) != 3 {
		t.Errorf("the undo is undone: %+v, asked %d times", again, len(f.asked))
	}
}

// Without someone to ask, the undo waits for a decision, and a second one is refused.
func TestUndoWaits(t *testing.T) {
	t.Parallel()
	f := openUndo(t)
	id := f.run(t, `mcp.bank.pay { to = "a" }`)
	out := f.undo(t, id, "")
	if out.Status != "waiting" || out.ApprovalID == "" {
		t.Fatalf("%+v", out)
	}
	if _, err := f.queue.Undo(t.Context(), id); err == nil || !strings.Contains(err.Error(), "undoes it already") {
		t.Errorf("a second undo: %v", err)
	}
	f.decide(t, out.ApprovalID, "allow", "")
	done, _, err := f.queue.Poll(t.Context(), []string{out.UndoJobID}, time.Minute, true)
	if err != nil || len(done) != 1 || done[0].State != job.Complete {
		t.Errorf("%+v, %v", done, err)
	}
	if got := fmt.Sprint(f.bank.payments()); got != "[a R-a]" {
		t.Errorf("paid %s", got)
	}
}
