package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/llm"
)

// turn is one message being answered.
type turn struct {
	agent    *Agent
	request  Request
	limits   Limits
	reply    Reply
	tools    *toolbox
	messages []llm.Message
	blocks   int // of text that were finished

	mu   sync.Mutex // one event at a time
	emit func(Event)
}

func (a *Agent) begin(r Request, emit func(Event)) *turn {
	if r.ID == "" {
		r.ID = rand.Text()
	}
	if emit == nil {
		emit = func(Event) {}
	}
	t := &turn{agent: a, request: r, emit: emit, limits: a.options.Limits.with(r.Limits)}
	t.reply = Reply{RequestID: r.ID, Language: cmp.Or(r.Language, "en"), Model: a.options.Model.About().Model}
	return t
}

func (t *turn) tell(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emit(e)
}

func (t *turn) notice(code, format string, args ...any) {
	n := Notice{code, fmt.Sprintf(format, args...)}
	t.reply.Notices = append(t.reply.Notices, n)
	t.tell(n)
}

// run asks and does until there is nothing more to do.
func (t *turn) run(ctx context.Context) error {
	if strings.TrimSpace(t.request.Message) == "" {
		return fault.New(fault.InvalidParams, "the message is empty").WithHint("send some text")
	}
	t.tell(Status{"Processing your request..."})
	tools, err := t.agent.openToolbox(ctx, &t.request)
	if err != nil {
		return err
	}
	t.tools = tools
	t.messages = conversation(&t.request)
	for t.reply.Iterations < t.limits.Iterations {
		t.reply.Iterations++
		answer, err := t.ask(ctx)
		if err != nil {
			return err
		}
		uses := answer.Uses()
		if len(uses) == 0 {
			return nil
		}
		t.tell(Status{fmt.Sprintf("Executing %d tool(s)...", len(uses))})
		t.messages = append(t.messages, t.use(ctx, uses))
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "answer message")
		}
		t.tell(Status{"Preparing your response..."})
	}
	t.stopAtLimit()
	return nil
}

// conversation is what was said before, and what is asked now.
func conversation(r *Request) []llm.Message {
	var messages []llm.Message
	for _, e := range r.History {
		if strings.TrimSpace(e.User) == "" || strings.TrimSpace(e.Assistant) == "" {
			continue // providers refuse empty messages
		}
		messages = append(messages, say(llm.User, e.User), say(llm.Assistant, e.Assistant))
	}
	return append(messages, say(llm.User, r.Message))
}

func say(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Blocks: []llm.Block{{Text: text}}}
}

// ask asks the model once and keeps what it says.
func (t *turn) ask(ctx context.Context) (llm.Answer, error) {
	answer, err := t.agent.options.Model.Answer(ctx, llm.Prompt{
		System: t.system(), Context: t.context(), Tools: t.tools.offered, Messages: t.messages,
	}, func(d llm.Delta) {
		if d.Text != "" {
			t.tell(Text{Block: t.blocks, Text: d.Text})
		}
	})
	t.reply.Usage.Add(answer.Usage)
	if err != nil {
		return answer, err
	}
	t.reply.Stop, t.reply.Model = answer.Stop, cmp.Or(answer.Model, t.reply.Model)
	if text := answer.Text(); strings.TrimSpace(text) != "" {
		t.reply.Responses = append(t.reply.Responses, text)
		t.blocks++
	}
	if len(answer.Blocks) > 0 {
		t.messages = append(t.messages, llm.Message{Role: llm.Assistant, Blocks: answer.Blocks})
	}
	t.tell(Usage{t.reply.Usage})
	return answer, nil
}

// stopAtLimit says in the answer itself that it is not finished.
func (t *turn) stopAtLimit() {
	text := fmt.Sprintf("I stopped here: this message took %d steps, which is as many as are allowed. "+
		"What is above may be incomplete; ask me to go on, or ask for less at a time.", t.limits.Iterations)
	t.tell(Text{Block: t.blocks, Text: text})
	t.reply.Responses = append(t.reply.Responses, text)
	t.reply.Stop = StopIterations
	t.notice("iteration_limit", "stopped after %d steps", t.limits.Iterations)
}
