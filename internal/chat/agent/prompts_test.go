package agent_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
)

func TestPrompts(t *testing.T) {
	t.Parallel()
	s := play(t, newToolSource().with("x.a", "Does.", answers("")), "say ok", func(o *agent.Options) {
		o.Version, o.Prompts = "1.2.3", agent.Prompts{"closing": "server closing"}
	})
	s.turn(t, "go", func(r *agent.Request) {
		r.Language, r.First = "de", true
		r.Prompts = []agent.Prompts{
			{"identity": "You are Acme's.", "closing": "org closing", "client_instructions": "No tables. %% for the web client %%"},
			{"closing": "my closing, {{version}}", "methodology": ""},
		}
	})
	system := s.model.Requests()[0].System
	at := -1
	for _, part := range []string{"You are Acme's.", "## Tools", "## Available tools", "### x", "## Answers", "## Client platform\n\nNo tables.", "my closing, 1.2.3", "Respond in de", "first message"} {
		next := strings.Index(system, part)
		if next <= at {
			t.Errorf("%q stands at %d, after %d:\n%s", part, next, at, system)
		}
		at = next
	}
	for _, part := range []string{"org closing", "server closing", "How to work", "for the web client", "## Memory"} {
		if strings.Contains(system, part) {
			t.Errorf("%q is there", part)
		}
	}
}

func TestPromptsCheck(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]agent.Prompts{"unknown": {"identety": "x"}, "too long": {"identity": strings.Repeat("ä", 8001)}} {
		if err := p.Check(); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (agent.Prompts{"identity": strings.Repeat("ä", 8000)}).Check(); err != nil {
		t.Error(err)
	}
	if err := agent.DefaultPrompts().Check(); err != nil {
		t.Error(err)
	}
}
