package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/core/tool"
)

// sessions stands in for the tools that manage sessions.
type sessions struct {
	mu     sync.Mutex
	names  map[string][]string // by owner
	calls  []string
	resets []string
}

func (s *sessions) toolSource() *toolSource {
	source := newToolSource()
	source.with("session_list", "", func(_ context.Context, call tool.Call) (tool.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := []map[string]string{}
		for _, name := range s.names[call.Caller.User] {
			list = append(list, map[string]string{"session_id": call.Caller.User + "#" + name, "name": name})
		}
		return tool.Output("", map[string]any{"sessions": list})
	})
	source.with("session_create", "", func(_ context.Context, call tool.Call) (tool.Result, error) {
		var in struct{ Name string }
		if err := json.Unmarshal(call.Args, &in); err != nil {
			return tool.Result{}, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names[call.Caller.User] = append(s.names[call.Caller.User], in.Name)
		return tool.Output("", map[string]string{"session_id": call.Caller.User + "#" + in.Name})
	})
	source.with("session_reset", "", func(_ context.Context, call tool.Call) (tool.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.resets = append(s.resets, string(call.Args))
		return tool.Output("ok", nil)
	})
	source.with("lua_eval", "", func(_ context.Context, call tool.Call) (tool.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, string(call.Args))
		return tool.Output("ok", nil)
	})
	source.tools[len(source.tools)-1].Input = json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"},"session_id":{"type":"string"}},"required":["code"]}`)
	return source
}

// TestSessionOfTheConversation checks that code of one conversation runs in one session,
// which the model does not see.
func TestSessionOfTheConversation(t *testing.T) {
	t.Parallel()
	store := &sessions{names: map[string][]string{}}
	source := store.toolSource()
	for i, c := range []string{"", "", "work"} {
		s := play(t, source, `use lua_eval {"code":"1"}`+"\n"+`use lua_eval {"code":"1","session_id":"other"}`+"\n---\nsay ok")
		s.turn(t, "go", func(r *agent.Request) { r.Conversation = c })
		offered := string(s.model.Requests()[0].Body)
		if i == 0 && (strings.Contains(offered, "session_id") || strings.Contains(offered, "session_list")) {
			t.Errorf("the model is offered sessions: %s", offered)
		}
	}
	if got := fmt.Sprint(store.names); got != "map[acme/anna:[chat chat:work]]" {
		t.Errorf("sessions %s", got)
	}
	want := map[string]int{`{"code":"1","session_id":"acme/anna#chat"}`: 4, `{"code":"1","session_id":"acme/anna#chat:work"}`: 2}
	for _, call := range store.calls {
		want[call]--
	}
	for call, n := range want {
		if n != 0 {
			t.Errorf("%d calls too few of %s: %v", n, call, store.calls)
		}
	}
}

// TestSessionsAreReset checks that a reset affects one conversation only, that forgetting a
// person removes all their sessions but no session outside conversations, and that neither
// creates a session.
func TestSessionsAreReset(t *testing.T) {
	t.Parallel()
	store := &sessions{names: map[string][]string{"acme/anna": {"chat", "chat:work", "chatter"}, "acme/bob": {"chat"}}}
	s := play(t, store.toolSource(), "say ok")
	for _, c := range []struct {
		reset func() error
		want  string
	}{
		{func() error { return s.Agent.Reset(t.Context(), "acme", "anna", "work") }, `[{"session_id":"acme/anna#chat:work"}]`},
		{func() error { return s.Agent.Reset(t.Context(), "acme", "anna", "") }, `[{"session_id":"acme/anna#chat"}]`},
		{func() error { return s.Agent.Forget(t.Context(), "acme", "anna") }, `[{"session_id":"acme/anna#chat"} {"session_id":"acme/anna#chat:work"}]`},
		{func() error { return s.Agent.Forget(t.Context(), "acme", "carl") }, `[]`},
		{func() error { return say(t, s.Agent, "/lua  reset") }, `[{"session_id":"acme/anna#chat:work"}]`},
		{func() error { return say(t, s.Agent, "/reset") }, `[{"session_id":"acme/anna#chat:work"}]`},
	} {
		store.resets = nil
		if err := c.reset(); err != nil || fmt.Sprint(store.resets) != c.want {
			t.Errorf("reset %v, %v, want %s", store.resets, err, c.want)
		}
	}
	if len(store.names) != 2 {
		t.Errorf("sessions %v", store.names)
	}
}

// say sends a message that the model must not get.
func say(t *testing.T, a *agent.Agent, message string) error {
	t.Helper()
	reply, err := a.Turn(t.Context(), agent.Request{Org: "acme", User: "anna", Conversation: "work", Message: message}, nil)
	if reply.Iterations != 0 || !strings.Contains(reply.Text(), "are reset") {
		t.Errorf("%s: %+v", message, reply)
	}
	return err
}
