package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

// models are the stand-in models a story started.
type models struct{ last *llmtest.Server }

// modelsKey finds them among the story's values.
type modelsKey struct{}

// model FILE starts a stand-in for a model's provider that answers as the
// scenario in FILE says, and has the program ask it: $LUANETTE_CHAT_BASE_URL is
// its address, $ANTHROPIC_API_KEY and $OPENAI_API_KEY its key. `model` alone prints
// what it was asked last, and fails when it was ever asked wrongly.
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
		ts.Fatalf("the stand-in model was asked wrongly: %s", strings.Join(trouble, "; "))
	}
	requests := all.last.Requests()
	if len(requests) == 0 {
		ts.Fatalf("the stand-in model was not asked")
	}
	last := requests[len(requests)-1]
	fmt.Fprintf(ts.Stdout(), "questions: %d\nmodel: %s\ntools: %s\nsystem: %s\n", len(requests), last.Model, strings.Join(last.Tools, " "), last.System)
	for _, turn := range last.Turns {
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", turn.Role, turn.Text)
	}
}
