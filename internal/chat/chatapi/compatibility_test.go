package chatapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
)

// remembering answers with the messages of the history that it got.
func remembering(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
	var before []string
	for _, e := range r.History {
		before = append(before, e.User)
	}
	return agent.Reply{Responses: []string{fmt.Sprintf("%s after %v", r.Message, before)}, Language: r.Language}, nil
}

// TestFieldsOfOlderClients checks that a field that this server does not know is ignored
// with a warning, and refused if the client asks for that.
func TestFieldsOfOlderClients(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	const body = `{"client_id":"whatsapp","user_id":"ann","message":"hi","message_type":"text","speaker":"Ann","attachments":[{"type":"image","url":"https://a.example/b.png"}],"metadata":{"a":1}%s}`
	status, answer, _ := p.ask(t, "POST", "/api/v1/chat", fmt.Sprintf(body, ""))
	want := `"warnings":["the field metadata is unknown and was ignored","the field speaker is unknown and was ignored","an attachment without data was ignored"]`
	if status != 200 || !strings.Contains(answer, want) {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer, _ = p.ask(t, "POST", "/api/v1/chat", fmt.Sprintf(body, `,"strict":true`)); status != 400 {
		t.Errorf("strict: %d %s", status, answer)
	}
}

// TestConversationsHaveTheirOwnHistory checks that chats and threads of a person do not
// see one another's messages.
func TestConversationsHaveTheirOwnHistory(t *testing.T) {
	t.Parallel()
	p := open(t, remembering, chatapi.Options{})
	for _, step := range []struct{ message, chat, want string }{
		{"one", "", "one after []"},
		{"two", `,"chat_id":"c"`, "two after []"},
		{"three", `,"chat_id":"c","thread_id":"t"`, "three after []"},
		{"four", `,"chat_id":"c"`, "four after [two]"},
		{"five", "", "five after [one]"},
	} {
		_, answer, _ := p.ask(t, "POST", "/api/v1/chat", `{"client_id":"web","user_id":"ann","message":"`+step.message+`"`+step.chat+`}`)
		if !strings.Contains(answer, step.want) {
			t.Errorf("%s: %s", step.message, answer)
		}
	}
}

// TestDirectivesAlone checks that a message that only chooses a mode or language is
// answered.
func TestDirectivesAlone(t *testing.T) {
	t.Parallel()
	p := open(t, remembering, chatapi.Options{})
	if status, body, _ := p.ask(t, "PUT", "/api/v1/admin/orgs/default/modes/coach", `{"overrides":{}}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for message, want := range map[string]string{"#coach": "Mode: coach.", "@pt-BR": "Language: pt-BR.", "@german": "Language: German."} {
		status, answer, _ := p.ask(t, "POST", "/api/v1/chat", say(message))
		if status != 200 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", message, status, answer)
		}
	}
	if status, body, _ := p.ask(t, "GET", "/api/v1/languages", ""); status != 200 || !strings.Contains(body, `{"code":"sw","name":"Swahili"}`) {
		t.Errorf("%d %s", status, body)
	}
}

// TestServersAreMerged checks that PATCH and POST keep what a request does not name, that
// PUT replaces, and that a token does not follow its server to another URL.
func TestServersAreMerged(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	const servers = "/api/v1/admin/orgs/default/mcp-servers"
	const hidden = `"authToken":"••••••••"`
	for _, step := range []struct{ method, path, body, want, gone string }{
		{"POST", servers, `{"id":"wiki","name":"Wiki","url":"https://wiki.example/mcp","authToken":"t"}`, `"enabled":true`, "?"},
		{"PATCH", servers + "/wiki", `{"enabled":false}`, `"url":"https://wiki.example/mcp",` + hidden + `,"enabled":false`, "?"},
		{"POST", servers, `{"id":"wiki","priority":7}`, `"url":"https://wiki.example/mcp",` + hidden + `,"enabled":false,"priority":7`, "?"},
		{"PATCH", servers + "/wiki", `{"url":"https://other.example/mcp"}`, `"url":"https://other.example/mcp","enabled":false`, hidden},
		{"PATCH", servers + "/wiki", `{"id":"other"}`, `cannot be changed`, "?"},
		{"PUT", servers + "/wiki", `{"name":"W"}`, `"name":"W","enabled":true,"priority":50`, "other.example"},
	} {
		_, body, _ := p.ask(t, step.method, step.path, step.body)
		if !strings.Contains(body, step.want) || strings.Contains(body, step.gone) {
			t.Errorf("%s %s %s: %s", step.method, step.path, step.body, body)
		}
	}
}
