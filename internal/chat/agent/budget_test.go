package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
)

// limited allows some requests to the model, and records what they used.
type limited struct {
	requests int
	spent    []string
}

func (l *limited) Check(context.Context, agent.Spender) error {
	if len(l.spent) == l.requests {
		return fault.New(fault.Limit, "the budget of anna for today is used up")
	}
	return nil
}

func (l *limited) Spend(_ context.Context, who agent.Spender, model string, u llm.Usage) error {
	l.spent = append(l.spent, fmt.Sprintf("%s %s/%s %s %v", who.Turn, who.Org, who.User, model, u.Total() > 0))
	return nil
}

// TestBudgetRefusesBeforeTheRequest checks that nothing is sent when the budget is used
// up, and that a turn that has called tools ends with an answer.
func TestBudgetRefusesBeforeTheRequest(t *testing.T) {
	t.Parallel()
	none := &limited{}
	s := play(t, newToolSource(), "say never", func(o *agent.Options) { o.Budget = none })
	_, err := s.Turn(t.Context(), agent.Request{Message: "hi"}, nil)
	if fault.CodeOf(err) != fault.Limit || len(s.model.Requests()) != 0 {
		t.Errorf("%v after %d requests", err, len(s.model.Requests()))
	}

	one := &limited{requests: 1}
	s = play(t, newToolSource().with("fs.write", "Writes.", answers("written")), "say Writing.\nuse fs__write {}\n---\nsay never", func(o *agent.Options) { o.Budget = one })
	reply := s.turn(t, "write it")
	if reply.Stop != agent.StopBudget || !strings.Contains(reply.Text(), "Writing.\nI stopped here: the budget of anna for today is used up.") ||
		len(s.model.Requests()) != 1 || !strings.Contains(s.lines(), "notice budget") {
		t.Errorf("%+v\n%s", reply, s.lines())
	}
	if got := fmt.Sprint(one.spent); got != "[req-1 acme/anna claude-sonnet-5-5 true]" {
		t.Error(got)
	}
}

// TestRestoredAnswersAreNotCountedAgain checks that an answer in the journal, which was
// paid for before, is not.
func TestRestoredAnswersAreNotCountedAgain(t *testing.T) {
	t.Parallel()
	budget := &limited{requests: 9}
	s := play(t, newToolSource().with("fs.write", "Writes.", answers("written")), "use fs__write {}\n---\nstatus 401 authentication_error no\n---\nsay done", func(o *agent.Options) { o.Budget = budget })
	notes := &memoryJournal{}
	r := agent.Request{ID: "req-1", Org: "acme", User: "anna", Message: "go", Journal: notes}
	if _, err := s.Turn(t.Context(), r, nil); err == nil {
		t.Fatal("the model did not refuse")
	}
	if _, err := s.Turn(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if len(budget.spent) != 3 { // the first answer, the refused request, the last answer
		t.Errorf("%q", budget.spent)
	}
}
