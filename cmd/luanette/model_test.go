package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// models holds the fake model that a story started last.
type models struct{ last *llmtest.Server }

// modelsKey is the key of the models in a story's values.
type modelsKey struct{}

// model implements model [FILE]. With a file it starts a fake model that answers with the
// steps in it, and sets $LUANETTE_CHAT_BASE_URL, $ANTHROPIC_API_KEY and $OPENAI_API_KEY.
// Without a file it prints the last request to the model, and fails if any request was
// invalid.
func model(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: model [FILE]")
	}
	all := ts.Value(modelsKey{}).(*models)
	if len(args) == 1 {
		steps, err := llmtest.Parse(ts.ReadFile(args[0]))
		ts.Check(err)
		all.last = llmtest.New(llmtest.Sequence(steps...))
		ts.Defer(all.last.Close)
		ts.Setenv("LUANETTE_CHAT_BASE_URL", all.last.URL)
		ts.Setenv("ANTHROPIC_API_KEY", llmtest.Key)
		ts.Setenv("OPENAI_API_KEY", llmtest.Key)
		return
	}
	if trouble := all.last.Trouble(); len(trouble) > 0 {
		ts.Fatalf("invalid requests to the model: %s", strings.Join(trouble, "; "))
	}
	requests := all.last.Requests()
	if len(requests) == 0 {
		ts.Fatalf("the model got no request")
	}
	last := requests[len(requests)-1]
	fmt.Fprintf(ts.Stdout(), "requests: %d\nmodel: %s\ntools: %s\nsystem: %s\n", len(requests), last.Model, strings.Join(last.Tools, " "), last.System)
	for _, turn := range last.Turns {
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", turn.Role, turn.Text)
	}
}
