package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// memoryJournal is a Journal that counts its writes.
type memoryJournal struct {
	mu     sync.Mutex
	steps  map[[2]int]agent.Step
	writes int
	crash  func(writes int) bool // ends the turn before that write
}

func (j *memoryJournal) Load(context.Context) (steps []agent.Step, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.steps {
		steps = append(steps, s)
	}
	return steps, nil
}

func (j *memoryJournal) Save(_ context.Context, s agent.Step) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes++
	if j.crash != nil && j.crash(j.writes) {
		return context.Canceled
	}
	if j.steps == nil {
		j.steps = map[[2]int]agent.Step{}
	}
	j.steps[[2]int{s.Iteration, s.Call}] = s
	return nil
}

// TestInterruptedAtEveryStep ends a turn with two calls before each of its writes and
// during each of its calls, and runs it again: a call that must not be repeated is made
// at most once, and what is not known is said.
func TestInterruptedAtEveryStep(t *testing.T) {
	t.Parallel()
	const points = 7 // at which the process may die
	for crashAt := 1; crashAt <= points+1; crashAt++ {
		t.Run(fmt.Sprint(crashAt), func(t *testing.T) {
			t.Parallel()
			pushes, reads, steps, restarted := 0, 0, 0, false
			ctx, crash := context.WithCancel(t.Context())
			step := func() bool { // one more point at which the process may die
				if steps++; steps == crashAt {
					crash()
				}
				return steps >= crashAt && !restarted
			}
			source := newToolSource().
				with("pay.push", "Pays", func(context.Context, tool.Call) (tool.Result, error) {
					pushes++
					if step() {
						return tool.Result{}, context.Canceled
					}
					return tool.Output("paid", nil)
				}).
				with("pay.read", "Reads", func(context.Context, tool.Call) (tool.Result, error) {
					reads++
					if step() {
						return tool.Result{}, context.Canceled
					}
					return tool.Output("read", nil)
				})
			for i := range source.tools {
				if source.tools[i].Name == "read" {
					source.tools[i].Hints.ReadOnly = true
				}
			}
			j := &memoryJournal{crash: func(int) bool { return step() }}
			request := agent.Request{Org: "acme", User: "anna", Message: "pay", Journal: j}
			s := playModel(t, source, llmtest.Start(t, func(r llmtest.Request) llmtest.Step {
				switch len(r.Turns) {
				case 1:
					return llmtest.Step{Say: []string{"Paying."}, Use: []llmtest.Use{{Name: "pay__push", Input: "{}"}}}
				case 3:
					return llmtest.Step{Use: []llmtest.Use{{Name: "pay__read", Input: "{}"}}}
				default:
					return llmtest.Step{Say: []string{"Done."}}
				}
			}))
			_, err := s.Turn(ctx, request, s.record)
			if crashAt > points { // nothing interrupts it
				if err != nil || steps != points {
					t.Errorf("%d points, %v", steps, err)
				}
				return
			}
			if err == nil {
				t.Fatal("the turn was not interrupted")
			}
			restarted = true
			asked := len(s.model.Requests())
			reply, err := s.Turn(t.Context(), request, s.record)
			if err != nil {
				t.Fatal(err)
			}
			if pushes > 1 || reads == 0 {
				t.Errorf("paid %d times, read %d times", pushes, reads)
			}
			known := slices.ContainsFunc(reply.Notices, func(n agent.Notice) bool { return n.Code == "unknown_outcome" })
			if known != (crashAt == 3 || crashAt == 4) {
				t.Errorf("crash at %d: told of an unknown outcome: %v", crashAt, known)
			}
			if again := len(s.model.Requests()) - asked; again > 3 {
				t.Errorf("asked the model %d times again", again)
			}
		})
	}
}

// TestUnknownOutcomeNamesTheTool checks that the model and the person learn which tool an
// interrupted call of call_tool was about.
func TestUnknownOutcomeNamesTheTool(t *testing.T) {
	t.Parallel()
	ctx, crash := context.WithCancel(t.Context())
	source := newToolSource().with("call_tool", "Calls a tool", func(context.Context, tool.Call) (tool.Result, error) {
		crash()
		return tool.Result{}, context.Canceled
	})
	s := playModel(t, source, llmtest.Start(t, func(r llmtest.Request) llmtest.Step {
		if len(r.Turns) == 1 {
			return llmtest.Step{Use: []llmtest.Use{{Name: "call_tool", Input: `{"name":"pay.push","arguments":{}}`}}}
		}
		return llmtest.Step{Expect: []string{"the server stopped while pay.push ran"}, Say: []string{"I do not know whether it was paid."}}
	}), func(o *agent.Options) { o.Core = []string{"call_tool"} })
	request := agent.Request{Org: "acme", User: "anna", Message: "pay", Journal: &memoryJournal{}}
	if _, err := s.Turn(ctx, request, s.record); err == nil {
		t.Fatal("the turn was not interrupted")
	}
	reply, err := s.Turn(t.Context(), request, s.record)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Notices) != 1 || !strings.HasPrefix(reply.Notices[0].Message, "pay.push may or may not have happened") {
		t.Errorf("notices %+v", reply.Notices)
	}
}
