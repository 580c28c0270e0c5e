package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/turn"
)

// halting says something and then waits until it is cancelled.
func halting(begun chan<- struct{}) script {
	return func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		if r.Message != "long" {
			return echo(ctx, r, emit)
		}
		emit(agent.Text{Text: "so far"})
		begun <- struct{}{}
		<-ctx.Done()
		return agent.Reply{Responses: []string{"so far"}}, context.Cause(ctx)
	}
}

// TestStop checks that what was said before a stop is the answer, that a waiting message
// can be stopped, and that the next message is answered.
func TestStop(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	service, _ := open(t, store(t), halting(begun), turn.Options{})
	long := say(t, service, ann, "long")
	<-begun
	waiting, next := say(t, service, ann, "waiting"), say(t, service, ann, "next")
	for _, one := range []*turn.Turn{waiting, long} {
		if err := service.Stop(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
	}
	if reply := answered(t, long); reply.Text() != "so far" || reply.Stop != turn.Stopped {
		t.Errorf("stopped: %+v", reply)
	}
	if reply := answered(t, waiting); reply.Text() != "" || reply.Stop != turn.Stopped {
		t.Errorf("stopped while waiting: %+v", reply)
	}
	if reply := answered(t, next); reply.Text() != "re: next" {
		t.Errorf("the next message: %+v", reply)
	}
	if err := service.Stop(t.Context(), long.ID); err != nil {
		t.Errorf("stopping an answered message: %v", err)
	}
	if err := service.Stop(t.Context(), "msg_unknown"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("stopping an unknown message: %v", err)
	}
}

func TestStopOnAnotherNode(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	services := cluster(t, halting(begun), "a", "b")
	long := say(t, services["a"], ann, "long")
	<-begun
	if err := services["b"].Stop(t.Context(), long.ID); err != nil {
		t.Fatal(err)
	}
	if reply := answered(t, long); reply.Text() != "so far" {
		t.Errorf("%+v", reply)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	url := store(t)
	service, leave := open(t, url, echo, turn.Options{})
	sent := say(t, service, ann, "hi")
	answered(t, sent)
	leave()
	service, _ = open(t, url, echo, turn.Options{})
	again, err := service.Attach(t.Context(), sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	if reply := answered(t, again); reply.Text() != "re: hi" || again.Message.Person != ann {
		t.Errorf("%+v of %v", reply, again.Message.Person)
	}
}

// TestReplay checks that the events of an answer are there after its end: after a restart, on
// another node, until they are too old, and not if they are too large.
func TestReplay(t *testing.T) {
	t.Parallel()
	url, watch := store(t), clock.NewVirtual(time.Date(2026, 11, 17, 9, 30, 0, 0, time.UTC))
	working := func(_ context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		for _, e := range []agent.Event{
			agent.Text{Text: "Let me "}, agent.Text{Text: "look."}, agent.Status{Message: "Executing 1 tool(s)..."},
			agent.ToolUse{ID: "1", Iteration: 1, Tool: "x.a", Input: json.RawMessage(`{"q":1}`)},
			agent.Media{MediaInfo: agent.MediaInfo{ID: "1.1.1", MIME: "image/png", Size: 4}},
			agent.ToolResult{ID: "1", Iteration: 1, Tool: "x.a", Text: r.Message, Took: time.Second}, agent.Usage{},
			agent.Text{Block: 1, Text: "Done."},
		} {
			emit(e)
		}
		return agent.Reply{Responses: []string{"Let me look.", "Done."}}, nil
	}
	open := func() (*turn.Service, func()) { return open(t, url, working, turn.Options{Clock: watch}) }
	service, leave := open()
	sent, large := say(t, service, ann, "hi"), say(t, service, ann, strings.Repeat("x", 300_000))
	answered(t, sent)
	answered(t, large)
	leave()
	service, _ = open()
	seen := func(id string) (all []string) {
		again, err := service.Attach(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := again.Follow(t.Context(), func(e agent.Event) error { all = append(all, fmt.Sprintf("%T %+v", e, e)); return nil })
		if err != nil || reply.Text() != "Let me look.\nDone." || !again.Replayed() {
			t.Errorf("%v %+v", err, reply)
		}
		return all
	}
	want := []string{
		"agent.Text {Block:0 Text:Let me look.}", "agent.Status {Message:Executing 1 tool(s)...}",
		"agent.ToolUse {ID:1 Iteration:1 Tool:x.a Input:[123 34 113 34 58 49 125]}", "agent.Media {MediaInfo:{ID:1.1.1 Tool: Name: MIME:image/png Size:4} Data:[]}",
		"agent.ToolResult {ID:1 Iteration:1 Tool:x.a Text:hi Failed:false Took:1s}", "agent.Text {Block:1 Text:Done.}",
	}
	if diff := cmp.Diff(want, seen(sent.ID)); diff != "" {
		t.Error(diff)
	}
	if got := seen(large.ID); len(got) != 1 || !strings.Contains(got[0], "too large") {
		t.Errorf("of a large one: %q", got)
	}
	watch.Advance(25 * time.Hour)
	if got := seen(sent.ID); len(got) != 1 || !strings.Contains(got[0], "not stored any more") {
		t.Errorf("a day later: %q", got)
	}
}

// TestReplayOnAnotherNode checks that a node has the events of what another one answers.
func TestReplayOnAnotherNode(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	services := cluster(t, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		close(begun)
		<-end
		return echo(ctx, r, emit)
	}, "a", "b")
	sent := say(t, services["a"], ann, "hi")
	<-begun
	there, err := services["b"].Attach(t.Context(), sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	var text string
	if _, err := there.Follow(t.Context(), func(e agent.Event) error { text += e.(agent.Text).Text; return nil }); err != nil || text != "re: hi" {
		t.Errorf("%v %q", err, text)
	}
}

// TestJournalSurvivesARestart checks that a turn that was interrupted finds the steps it
// saved, and that they are removed with the answer.
func TestJournalSurvivesARestart(t *testing.T) {
	t.Parallel()
	url := store(t)
	begun := make(chan struct{})
	service, leave := open(t, url, func(ctx context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		for _, s := range []agent.Step{{Iteration: 1, Data: json.RawMessage(`1`)}, {Iteration: 1, Call: 1}, {Iteration: 1, Call: 2}, {Iteration: 1, Call: 2, Data: json.RawMessage(`2`)}} {
			if err := r.Journal.Save(ctx, s); err != nil {
				t.Error(err)
			}
		}
		close(begun)
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	}, turn.Options{})
	sent := say(t, service, ann, "hi")
	<-begun
	leave()
	if _, err := sent.Wait(t.Context()); !isMoved(err) {
		t.Errorf("the interrupted turn ended with %v", err)
	}
	var steps []string
	var later agent.Journal
	service, _ = open(t, url, func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		found, err := r.Journal.Load(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, s := range found {
			steps = append(steps, string(rune('0'+s.Iteration))+string(rune('0'+s.Call))+string(s.Data))
		}
		later = r.Journal
		return echo(ctx, r, emit)
	}, turn.Options{})
	again, err := service.Attach(t.Context(), sent.ID)
	if err != nil {
		t.Fatal(err)
	}
	answered(t, again)
	slices.Sort(steps)
	if want := []string{"101", "11", "122"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if left, err := later.Load(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%d steps are left (%v)", len(left), err)
	}
	if err := later.Save(t.Context(), agent.Step{Iteration: 2}); err == nil {
		t.Error("a step of an answered turn was stored")
	}
}

func isMoved(err error) bool {
	return fault.CodeOf(err) == fault.Unavailable && fault.HintOf(err) != ""
}
