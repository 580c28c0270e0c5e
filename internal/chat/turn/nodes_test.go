package turn_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/turn"
)

// cluster opens a service per name on one database and connects their broadcasts.
func cluster(t *testing.T, answer script, names ...string) map[string]*turn.Service {
	t.Helper()
	url := store(t)
	services := map[string]*turn.Service{}
	var mu sync.Mutex
	for _, name := range names {
		service, _ := open(t, url, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
			return answer(context.WithValue(ctx, nodeKey{}, name), r, emit)
		}, turn.Options{Node: name, Broadcast: func(_ context.Context, notification string) {
			mu.Lock()
			defer mu.Unlock()
			for other, service := range services {
				if other != name {
					service.Receive(notification)
				}
			}
		}})
		mu.Lock()
		services[name] = service
		mu.Unlock()
	}
	return services
}

type nodeKey struct{}

// TestOrderAcrossNodes checks that messages of one person to different nodes are answered
// one at a time, in the order in which they were accepted.
func TestOrderAcrossNodes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	running := 0
	services := cluster(t, func(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		mu.Lock()
		running++
		if running > 1 {
			t.Error("two turns of one person at a time")
		}
		order = append(order, r.Message)
		mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		running--
		return agent.Reply{Responses: []string{r.Message}}, nil
	}, "a", "b", "c")
	var turns []*turn.Turn
	var want []string
	for i := range 30 {
		text := fmt.Sprint(i)
		turn, err := services[[]string{"a", "b", "c"}[i*7%3]].Send(t.Context(), conversation.Message{Person: ann, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		turns, want = append(turns, turn), append(want, text)
	}
	for _, turn := range turns {
		if _, err := turn.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("answered %v", order)
	}
}

// TestReassignedMessageIsAnsweredOnce checks that the answer of the node that took over a
// message counts, not that of a node taken for dead, also for clients waiting at the latter.
func TestReassignedMessageIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}), make(chan struct{})
	services := cluster(t, func(ctx context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		node := ctx.Value(nodeKey{}).(string)
		if node == "a" && r.Message == "first" {
			close(started)
			<-proceed
		}
		return agent.Reply{Responses: []string{node + " says " + r.Message}}, nil
	}, "a", "b")
	first, err := services["a"].Send(t.Context(), conversation.Message{Person: ann, Key: "1", Text: "first"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	second, err := services["b"].Send(t.Context(), conversation.Message{Person: ann, Key: "2", Text: "second"})
	if err != nil {
		t.Fatal(err)
	}
	retried, err := services["b"].Send(t.Context(), conversation.Message{Person: ann, Key: "1", Text: "first"})
	if err != nil || retried.ID != first.ID {
		t.Fatalf("the repeated message is %v (%v)", retried, err)
	}
	owners, err := services["b"].Owners(t.Context())
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(owners)), []string{"a", "b"}) {
		t.Errorf("owners %v (%v)", owners, err)
	}
	if err := services["b"].TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	for _, turn := range []*turn.Turn{retried, second} {
		if reply, err := turn.Wait(t.Context()); err != nil || reply.Text() != "b says "+turn.Message.Text {
			t.Errorf("answered %q (%v)", reply.Text(), err)
		}
	}
	close(proceed)
	if reply, err := first.Wait(t.Context()); err != nil || reply.Text() != "b says first" {
		t.Errorf("the first node says %q (%v)", reply.Text(), err)
	}
	entries, total, err := services["a"].Conversations.History(t.Context(), ann, 10, 0)
	if err != nil || total != 2 || entries[0].AssistantResponse != "b says first" {
		t.Errorf("history %v (%v)", entries, err)
	}
}

// TestRecheckCancelsReassignedTurns checks that a node cancels turns that another node took over.
func TestRecheckCancelsReassignedTurns(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	services := cluster(t, func(ctx context.Context, _ agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		if ctx.Value(nodeKey{}) == "a" {
			close(started)
			<-ctx.Done()
			return agent.Reply{}, context.Cause(ctx)
		}
		return agent.Reply{Responses: []string{"here"}}, nil
	}, "a", "b")
	turn, err := services["a"].Send(t.Context(), conversation.Message{Person: ann, Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	if err := services["a"].Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := services["b"].TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := services["a"].Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reply, err := turn.Wait(t.Context()); err != nil || reply.Text() != "here" {
		t.Errorf("answered %q (%v)", reply.Text(), err)
	}
}

// TestDrain checks that draining finishes the turn in progress and starts no other.
func TestDrain(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}, 2), make(chan struct{})
	service, _ := open(t, store(t), func(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		started <- struct{}{}
		<-proceed
		return agent.Reply{Responses: []string{r.Message}}, nil
	}, turn.Options{})
	say := func(text string) *turn.Turn {
		turn, err := service.Send(t.Context(), conversation.Message{Person: ann, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	first := say("first")
	say("second")
	<-started
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if left := service.Drain(ended); left != 1 {
		t.Errorf("%d left, want the one in progress", left)
	}
	if _, err := service.Send(t.Context(), conversation.Message{Person: ann, Text: "third"}); err == nil {
		t.Error("a message was accepted while draining")
	}
	close(proceed)
	if left := service.Drain(t.Context()); left != 0 {
		t.Errorf("%d left after the turn ended", left)
	}
	if reply, err := first.Wait(t.Context()); err != nil || reply.Text() != "first" {
		t.Errorf("answered %q (%v)", reply.Text(), err)
	}
	service.Close()
	if len(started) != 0 {
		t.Error("the second turn began")
	}
}
