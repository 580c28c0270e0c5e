package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
)

// answering is a conversation whose answers have notices.
type answering struct{ notices [][]agent.Notice }

func (a *answering) Say(_ context.Context, _ string, emit func(agent.Event)) (agent.Reply, error) {
	for _, n := range a.notices[0] {
		emit(n)
	}
	a.notices = a.notices[1:]
	return agent.Reply{}, nil
}

func (*answering) Reset(context.Context) error { return nil }
func (*answering) Close(context.Context) error { return nil }

// TestUnreachableServersAreToldOnce checks that the chat says once that a server cannot be
// used, and again when it was usable in between.
func TestUnreachableServersAreToldOnce(t *testing.T) {
	t.Parallel()
	away, busy := agent.Notice{Code: agent.ServerAway, Message: "wiki is currently unreachable"}, agent.Notice{Code: "model_busy", Message: "busy"}
	var stderr bytes.Buffer
	loop := &chatLoop{
		flags: &chatCommand{}, proc: &process{Stdout: &bytes.Buffer{}, Stderr: &stderr},
		chat: &answering{[][]agent.Notice{{away}, {away, busy}, {away, busy}, {}, {away}}},
	}
	for range 5 {
		if err := loop.say(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
	}
	const want = "! wiki is currently unreachable\n! busy\n! busy\n! wiki is currently unreachable\n"
	if stderr.String() != want {
		t.Errorf("said %q", stderr.String())
	}
}
