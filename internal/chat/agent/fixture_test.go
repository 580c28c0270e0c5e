package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// toolSource is a source of tools that are functions.
type toolSource struct {
	tools []tool.Info
	do    map[tool.Ref]func(ctx context.Context, call tool.Call) (tool.Result, error)
}

func newToolSource() *toolSource {
	return &toolSource{do: map[tool.Ref]func(context.Context, tool.Call) (tool.Result, error){}}
}

// with adds "space.name" or "name".
func (s *toolSource) with(name, description string, do func(context.Context, tool.Call) (tool.Result, error)) *toolSource {
	ref := tool.Ref{Name: name}
	if space, rest, ok := strings.Cut(name, "."); ok {
		ref = tool.Ref{Space: space, Name: rest}
	}
	s.tools = append(s.tools, tool.Info{Ref: ref, Description: description, Input: json.RawMessage(`{"type":"object"}`)})
	s.do[ref] = do
	return s
}

func (s *toolSource) Tools(context.Context) ([]tool.Info, error) { return s.tools, nil }

func (s *toolSource) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	do, ok := s.do[call.Ref]
	if !ok {
		return tool.Result{}, fault.New(fault.ToolNotFound, "no tool %s", call.Ref)
	}
	return do(ctx, call)
}

// answers is a tool that always returns the same text.
func answers(text string) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return tool.Output(text, nil) }
}

// fixture is an agent over a catalog and a fake model.
type fixture struct {
	*agent.Agent
	model   *llmtest.Server
	catalog *catalog.Catalog

	mu     sync.Mutex
	events []agent.Event
}

// play returns a fixture in which the model answers as the scenario says.
func play(t *testing.T, source *toolSource, scenario string, change ...func(*agent.Options)) *fixture {
	t.Helper()
	steps, err := llmtest.Parse(scenario)
	if err != nil {
		t.Fatal(err)
	}
	return playModel(t, source, llmtest.Play(t, steps...), change...)
}

// playModel returns a fixture with that model.
func playModel(t *testing.T, source *toolSource, server *llmtest.Server, change ...func(*agent.Options)) *fixture {
	t.Helper()
	slices.SortFunc(source.tools, func(a, b tool.Info) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	s := &fixture{model: server, catalog: catalog.New(catalog.Options{Sources: []tool.Source{source}})}
	o := agent.Options{Model: openModel(t, "anthropic", server), Tools: s.catalog}
	for _, c := range change {
		c(&o)
	}
	var err error
	if s.Agent, err = agent.New(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// openModel returns a client of the fake model.
func openModel(t *testing.T, provider string, server *llmtest.Server) llm.Model {
	t.Helper()
	model, err := llm.Open(llm.Options{
		Provider: provider, Model: llm.DefaultModel, BaseURL: server.URL, Key: secret.New(llmtest.Key),
		Retry: llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// onBothAPIs runs a test with a client of each API.
func onBothAPIs(t *testing.T, server func(t *testing.T) *llmtest.Server, test func(t *testing.T, server *llmtest.Server, model func(*agent.Options))) {
	t.Helper()
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			test(t, s, func(o *agent.Options) { o.Model = openModel(t, provider, s) })
		})
	}
}

func (s *fixture) record(e agent.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// turn answers a message of anna.
func (s *fixture) turn(t *testing.T, message string, change ...func(*agent.Request)) agent.Reply {
	t.Helper()
	r := agent.Request{ID: "req-1", Org: "acme", User: "anna", Message: message}
	for _, c := range change {
		c(&r)
	}
	reply, err := s.Turn(t.Context(), r, s.record)
	if err != nil {
		t.Fatalf("turn: %v", err)
	}
	return reply
}

// lines describes the events, a line each.
func (s *fixture) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, e := range s.events {
		switch e := e.(type) {
		case agent.Status:
			lines = append(lines, "status "+e.Message)
		case agent.Text:
			lines = append(lines, fmt.Sprintf("text %d %s", e.Block, e.Text))
		case agent.ToolUse:
			lines = append(lines, fmt.Sprintf("use %d %s %s", e.Iteration, e.Tool, e.Input))
		case agent.ToolResult:
			lines = append(lines, fmt.Sprintf("result %d %s failed=%v %s", e.Iteration, e.Tool, e.Failed, e.Text))
		case agent.Notice:
			lines = append(lines, "notice "+e.Code)
		}
	}
	return strings.Join(lines, "\n")
}
