package openaiapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/chat/llm"
)

// message is a message of a request.
type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// toolCall is a call of one of the client's tools.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in a stream
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// use returns the call for the model; providers refuse arguments that are not JSON.
func (c toolCall) use() *llm.Use {
	input := json.RawMessage(c.Function.Arguments)
	if !json.Valid(input) {
		input = json.RawMessage(`{}`)
	}
	return &llm.Use{ID: c.ID, Name: c.Function.Name, Input: input}
}

// conversation returns the messages to the model, and the client's instructions.
func (q *Request) conversation() (messages []llm.Message, instructions string, err error) {
	var system []string
	for i, m := range q.Messages {
		switch m.Role {
		case "system", "developer":
			system = append(system, m.Content.text)
			continue
		case "user":
			messages = append(messages, llm.Message{Role: llm.User, Blocks: m.Content.blocks()})
		case "assistant":
			blocks := m.Content.blocks()
			for _, call := range m.ToolCalls {
				blocks = append(blocks, llm.Block{Use: call.use()})
			}
			messages = append(messages, llm.Message{Role: llm.Assistant, Blocks: blocks})
		case "tool":
			result := &llm.Result{ID: m.ToolCallID, Text: m.Content.text, Media: m.Content.media}
			messages = append(messages, llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: result}}})
		default:
			return nil, "", bad(fmt.Sprintf("messages[%d].role", i), "the role %q is not supported", m.Role)
		}
	}
	if n := len(messages); n == 0 || messages[n-1].Role != llm.User || len(messages[n-1].Blocks) == 0 {
		return nil, "", bad("messages", "the last message must be one of the user or of a tool, with content")
	}
	return messages, strings.TrimSpace(strings.Join(system, "\n\n")), nil
}
