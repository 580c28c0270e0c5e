package conversation

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
)

// Started is published when a turn begins.
type Started struct {
	Turn      string `json:"turn"`
	Person    string `json:"person"`
	RequestID string `json:"request_id"`
}

// EventType is "chat.turn_started".
func (Started) EventType() string  { return "chat.turn_started" }
func (s Started) EventKey() string { return s.Turn }

// Finished is published when a turn has ended. It does not contain any text of the
// conversation.
type Finished struct {
	Turn       string  `json:"turn"`
	Person     string  `json:"person"`
	RequestID  string  `json:"request_id"`
	DurationMS float64 `json:"duration_ms"`
	Iterations int     `json:"iterations"`
	ToolCalls  int     `json:"tool_calls"`
	Model      string  `json:"model,omitempty"`
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	Cost       float64 `json:"cost_usd"`
	Error      string  `json:"error,omitempty"` // its code
}

// EventType is "chat.turn_finished".
func (Finished) EventType() string  { return "chat.turn_finished" }
func (f Finished) EventKey() string { return f.Turn }

func finished(t *Turn, reply agent.Reply, err error, took time.Duration) Finished {
	f := Finished{
		Turn: t.ID, Person: t.Message.Person.String(), RequestID: t.Message.RequestID,
		DurationMS: float64(took.Microseconds()) / 1000,
		Iterations: reply.Iterations, ToolCalls: reply.ToolCalls, Model: reply.Model,
		Input: reply.Usage.Input, Output: reply.Usage.Output, Cost: reply.Usage.Cost,
	}
	if err != nil {
		f.Error = string(fault.CodeOf(err))
	}
	return f
}
