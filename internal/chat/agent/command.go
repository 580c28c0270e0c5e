package agent

import (
	"context"
	"strings"

	"github.com/luanette/luanette/internal/chat/llm"
)

// isReset reports whether the message is a command that resets the Lua session of the
// conversation. The model is not asked.
func (r *Request) isReset() bool {
	switch strings.Join(strings.Fields(r.Message), " ") {
	case "/reset", "/lua reset":
		return len(r.Messages) == 0
	}
	return false
}

// resetSession answers such a message.
func (t *turn) resetSession(ctx context.Context) error {
	if err := t.reset(ctx, func(name string) bool { return name == t.sessionName() }); err != nil {
		return err
	}
	const answer = "The Lua variables of this conversation are reset."
	t.send(Text{Text: answer})
	t.reply.Responses, t.reply.Stop = []string{answer}, llm.StopEnd
	return nil
}
