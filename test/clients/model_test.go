package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// model is a model API for clients: it asks for one tool of Luanette once and answers
// with the tool's result. It speaks the wire formats of Anthropic, of OpenAI (both) and of
// Gemini as far as clients need them. Unlike llmtest it does not check requests, which are
// not ours.
type model struct {
	*httptest.Server
	tool string // of Luanette

	mu  sync.Mutex
	log []string // what was asked and answered
}

// The call that the model asks for, and a text of its result.
const (
	toolArguments = `{"name":"everything.get-sum","arguments":{"a":20,"b":22}}`
	toolResult    = "The sum of 20 and 22 is 42"
)

func newModel(t *testing.T) *model {
	m := &model{tool: "call_tool"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.serve(anthropic))
	mux.HandleFunc("POST /v1/chat/completions", m.serve(chat))
	mux.HandleFunc("POST /v1/responses", m.serve(responses))
	mux.HandleFunc("POST /v1beta/models/", m.serve(gemini))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.note("other " + r.Method + " " + r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[],"input_tokens":10,"totalTokens":10}`)
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

func (m *model) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, text)
}

func (m *model) notes() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.log, "\n")
}

// answer is what the model says: a text, or a call of the tool of that name.
type answer struct{ text, tool string }

// wire writes an answer in a format.
type wire func(w io.Writer, a answer, stream bool)

func (m *model) serve(write wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var head struct{ Stream bool }
		_ = json.Unmarshal(body, &head) // Gemini says it in the path
		stream := head.Stream || strings.Contains(r.URL.Path, "stream")
		a := m.decide(string(body))
		m.note(fmt.Sprintf("%s stream=%v tool=%q text=%q", r.URL.Path, stream, a.tool, a.text))
		w.Header().Set("Content-Type", "application/json")
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		write(w, a, stream)
	}
}

// results are what a request has the result of a tool in.
var results = []string{`"tool_result"`, `"function_call_output"`, `"role":"tool"`, `"functionResponse"`}

// decide answers with the tool's result if it is in the request, and otherwise asks for the
// tool if it is offered.
func (m *model) decide(body string) answer {
	if strings.Contains(body, toolResult) {
		return answer{text: "The tool says: " + toolResult}
	}
	if slices.ContainsFunc(results, func(one string) bool { return strings.Contains(body, one) }) {
		return answer{text: "I was not allowed to"}
	}
	if strings.Contains(body, "mcp__luanette__"+m.tool) && strings.Contains(body, `"tool_search"`) {
		return answer{tool: "mcp__luanette__" + m.tool} // Qwen names tools in the prompt and offers them when they are called
	}
	for _, prefix := range []string{"mcp__luanette__", "mcp_luanette_", "luanette_", ""} {
		name := prefix + m.tool
		if strings.Contains(body, `"name":"`+name+`"`) || strings.Contains(body, `"name": "`+name+`"`) {
			return answer{tool: name}
		}
	}
	return answer{text: "ok"}
}

type object map[string]any

func send(w io.Writer, event string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if event != "" {
		fmt.Fprintf(w, "event: %s\n", event)
	}
	fmt.Fprintf(w, "data: %s\n\n", text)
}

func anthropic(w io.Writer, a answer, stream bool) {
	block, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.text}, "end_turn"
	whole := object{"type": "text", "text": a.text}
	if a.tool != "" {
		block = object{"type": "tool_use", "id": "toolu_1", "name": a.tool, "input": object{}}
		delta, stop = object{"type": "input_json_delta", "partial_json": toolArguments}, "tool_use"
		whole = object{"type": "tool_use", "id": "toolu_1", "name": a.tool, "input": json.RawMessage(toolArguments)}
	}
	usage := object{"input_tokens": 10, "output_tokens": 5}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "content": []any{whole}, "stop_reason": stop, "stop_sequence": nil, "usage": usage}
	if !stream {
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	send(w, "message_start", object{"type": "message_start", "message": message})
	send(w, "content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	send(w, "content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	send(w, "content_block_stop", object{"type": "content_block_stop", "index": 0})
	send(w, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	send(w, "message_stop", object{"type": "message_stop"})
}

func chat(w io.Writer, a answer, stream bool) {
	message, finish := object{"role": "assistant", "content": a.text}, "stop"
	if a.tool != "" {
		call := object{"index": 0, "id": "call_1", "type": "function", "function": object{"name": a.tool, "arguments": toolArguments}}
		message, finish = object{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	head := func(kind string, choices ...any) object {
		return object{"id": "chat_1", "object": kind, "created": 1, "model": "stand-in", "choices": choices}
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !stream {
		whole := head("chat.completion", object{"index": 0, "message": message, "finish_reason": finish})
		whole["usage"] = usage
		_ = json.NewEncoder(w).Encode(whole)
		return
	}
	send(w, "", head("chat.completion.chunk", object{"index": 0, "delta": message, "finish_reason": nil}))
	send(w, "", head("chat.completion.chunk", object{"index": 0, "delta": object{}, "finish_reason": finish}))
	last := head("chat.completion.chunk")
	last["choices"], last["usage"] = []any{}, usage // a chunk of its own: Continue reads no choices beside it
	send(w, "", last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func responses(w io.Writer, a answer, _ bool) {
	item := object{"type": "message", "id": "item_1", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}}}
	if a.tool != "" {
		item = object{"type": "function_call", "id": "item_1", "call_id": "call_1", "name": a.tool, "arguments": toolArguments, "status": "completed"}
		if name, namespaced := strings.CutPrefix(a.tool, "mcp__luanette__"); namespaced || !strings.Contains(a.tool, "luanette") {
			item["name"], item["namespace"] = strings.TrimPrefix(name, "mcp__luanette__"), "mcp__luanette"
		}
	}
	send(w, "response.created", object{"type": "response.created", "response": object{"id": "resp_1"}})
	send(w, "response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	send(w, "response.completed", object{"type": "response.completed", "response": object{
		"id": "resp_1", "output": []any{item}, "usage": object{"input_tokens": 10, "input_tokens_details": nil, "output_tokens": 5, "output_tokens_details": nil, "total_tokens": 15},
	}})
}

func gemini(w io.Writer, a answer, stream bool) {
	part := object{"text": a.text}
	if a.tool != "" {
		part = object{"functionCall": object{"name": a.tool, "args": json.RawMessage(toolArguments)}}
	}
	response := object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
	}
	if stream {
		send(w, "", response)
		return
	}
	_ = json.NewEncoder(w).Encode(response)
}
