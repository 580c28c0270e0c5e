package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// block is a content block of the Anthropic Messages API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// scriptedModel is a fake model that makes a tool call in each turn, which may depend on
// the last result, and then answers with the last result.
type scriptedModel struct {
	t     *testing.T
	turns []func(last string) (tool string, input any)
}

func (a *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		System   string
		Tools    []struct{ Name string }
		Messages []message
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/messages" {
		a.t.Errorf("%s: %v", r.URL.Path, err)
	}
	if !strings.Contains(request.System, "its own for jobs, schedules, sessions") || len(request.Tools) != 5 {
		a.t.Errorf("the model got the instructions %q and %d tools", request.System, len(request.Tools))
	}
	turn := len(request.Messages) / 2
	last := request.Messages[len(request.Messages)-1].Content[0].Content
	answer := map[string]any{"role": "assistant", "stop_reason": "end_turn", "content": []block{{Type: "text", Text: last}}}
	if turn < len(a.turns) {
		name, input := a.turns[turn](last)
		raw, _ := json.Marshal(input)
		answer["stop_reason"] = "tool_use"
		answer["content"] = []block{{Type: "tool_use", ID: fmt.Sprint("toolu_", turn), Name: name, Input: raw}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestModelUsesASession checks that variables of a session persist from one call of a model
// to the next, also after an error.
func TestModelUsesASession(t *testing.T) {
	t.Parallel()
	url, _ := startShared(t)
	client := connect(t, url)
	session := ""
	eval := func(code string) func(string) (string, any) {
		return func(string) (string, any) {
			return "lua_eval", map[string]string{"code": code, "session_id": session}
		}
	}
	model := httptest.NewServer(&scriptedModel{t, []func(string) (string, any){
		func(string) (string, any) { return "session_create", map[string]string{"name": "work"} },
		func(last string) (string, any) {
			session = strings.Fields(last)[1]
			return eval("x = 10 function twice(n) return 2 * n end")("")
		},
		eval("nothing.at_all = x"),
		func(last string) (string, any) {
			if !strings.Contains(last, "attempt to index a nil value (global 'nothing')") {
				t.Errorf("result of the failing code: %s", last)
			}
			return eval("x = x + 1 return twice(x)")("")
		},
		func(last string) (string, any) {
			if !strings.Contains(last, "Result: 22") {
				t.Errorf("result %s, want 22", last)
			}
			return "session_reset", map[string]string{"session_id": session}
		},
		eval("return type(x), #map({ 1, 2 }, tostring)"),
	}})
	defer model.Close()

	_, greeting := client.post(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	var hello struct{ Result struct{ Instructions string } }
	decodeMessage(t, greeting, &hello)
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	_, list := client.post(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	decodeMessage(t, list, &listed)

	messages := []message{{"user", []block{{Type: "text", Text: "Try the session."}}}}
	for range 20 {
		raw, _ := json.Marshal(map[string]any{"model": "fake", "max_tokens": 100, "system": hello.Result.Instructions, "tools": listed.Result.Tools, "messages": messages})
		resp, err := http.Post(model.URL+"/v1/messages", "application/json", bytes.NewReader(raw)) // a server of this test
		if err != nil {
			t.Fatal(err)
		}
		var reply struct {
			StopReason string `json:"stop_reason"`
			Content    []block
		}
		err = json.NewDecoder(resp.Body).Decode(&reply)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message{"assistant", reply.Content})
		if reply.StopReason == "end_turn" {
			if got := reply.Content[0].Text; !strings.Contains(got, `"nil"`) || !strings.Contains(got, "2") {
				t.Errorf("final answer %s", got)
			}
			return
		}
		use := reply.Content[0]
		var answer struct {
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		decodeMessage(t, client.call(use.Name, use.Input), &answer)
		messages = append(messages, message{"user", []block{{Type: "tool_result", ToolUseID: use.ID, Content: answer.Result.Content[0].Text, IsError: answer.Result.IsError}}})
	}
	t.Error("the model did not end its turn")
}

// decodeMessage decodes the last message of a response, which may be an event stream.
func decodeMessage(t *testing.T, text string, into any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[len(lines)-1], "data: ")), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
