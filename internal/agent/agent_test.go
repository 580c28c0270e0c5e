package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/agent"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/llm"
	"github.com/luanette/luanette/internal/tool"
)

// parrot is a model that says what it is told to, one answer after another.
type parrot struct {
	answers []llm.Answer
	asked   []llm.Prompt
}

func (p *parrot) About() llm.About { return llm.About{Provider: "test", Model: "parrot"} }

func (p *parrot) Answer(_ context.Context, prompt llm.Prompt, emit func(llm.Delta)) (llm.Answer, error) {
	if len(p.asked) == len(p.answers) {
		return llm.Answer{}, fault.New(fault.Upstream, "asked too often")
	}
	answer := p.answers[len(p.asked)]
	p.asked = append(p.asked, prompt)
	if text := answer.Text(); text != "" {
		emit(llm.Delta{Text: text})
	}
	return answer, nil
}

func says(text string) llm.Answer {
	return llm.Answer{Blocks: []llm.Block{{Text: text}}, Stop: llm.StopEnd}
}

func wants(id, name, input string) llm.Answer {
	use := llm.Use{ID: id, Name: name, Input: json.RawMessage(input)}
	return llm.Answer{Blocks: []llm.Block{{Use: &use}}, Stop: llm.StopTools}
}

// shelf is a source of tools that are functions.
type shelf map[tool.Ref]func(args json.RawMessage) (tool.Result, error)

func (s shelf) Tools(context.Context) ([]tool.Info, error) {
	var all []tool.Info
	for ref := range s {
		all = append(all, tool.Info{Ref: ref, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return all, nil
}

func (s shelf) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return s[call.Ref](call.Args)
}

func TestTurnUsesToolsAndTellsOfIt(t *testing.T) {
	t.Parallel()
	model := &parrot{answers: []llm.Answer{wants("1", "fs__read", `{"path":"a"}`), says("it says hi")}}
	a, err := agent.New(agent.Options{Model: model, Tools: shelf{
		{Space: "fs", Name: "read"}: func(json.RawMessage) (tool.Result, error) { return tool.Output("hi", nil) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	reply, err := a.Turn(t.Context(), agent.Request{User: "u", Message: "what is in a?"}, func(e agent.Event) {
		switch e := e.(type) {
		case agent.ToolUse:
			told = append(told, "use "+e.Tool+" "+string(e.Input))
		case agent.ToolResult:
			told = append(told, "result "+e.Text)
		case agent.Text:
			told = append(told, "text "+e.Text)
		}
	})
	if err != nil || reply.Text() != "it says hi" || reply.Iterations != 2 {
		t.Fatalf("reply %+v, %v", reply, err)
	}
	if got := strings.Join(told, "; "); got != `use fs.read {"path":"a"}; result hi; text it says hi` {
		t.Errorf("told %s", got)
	}
}
