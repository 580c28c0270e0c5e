package turn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/turn"
)

func sayIn(t *testing.T, service *turn.Service, id, text string) *turn.Turn {
	t.Helper()
	turn, err := service.Send(t.Context(), conversation.Message{Person: ann, Conversation: id, Text: text, RequestID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// listed returns a person's conversations in a line.
func listed(t *testing.T, service *turn.Service, p profile.Person) (line string) {
	t.Helper()
	list, err := service.Conversations.List(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		line += fmt.Sprintf("%s:%s:%d:%v ", c.ID, c.Title, c.Messages, c.Busy)
	}
	return line
}

// TestConversations checks the list of conversations, what is stored of each, and that one
// is deleted without the others.
func TestConversations(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	var forgotten []string
	service, _ := open(t, store(t), func(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		if r.Message == "fail" {
			return agent.Reply{}, fault.New(fault.Upstream, "no such thing")
		}
		if r.Message == "long" {
			return halting(begun)(ctx, r, emit)
		}
		return agent.Reply{Responses: []string{"ok"}, Trace: "abc", Tools: []agent.UsedTool{{Tool: "x.y", Result: "42"}}}, nil
	}, turn.Options{Conversations: conversation.Options{OnForgetConversation: func(_ context.Context, p profile.Person, id string) error {
		forgotten = append(forgotten, p.User+"/"+id)
		return nil
	}}})
	answered(t, sayIn(t, service, "a", "first line\nsecond line"))
	answered(t, sayIn(t, service, "b", "other"))
	answered(t, sayIn(t, service, "a", "more"))
	if _, err := sayIn(t, service, "b", "fail").Wait(t.Context()); err == nil {
		t.Error("no failure")
	}
	long := sayIn(t, service, "a", "long")
	<-begun
	if got, want := listed(t, service, ann), "a:first line:3:true b:other:2:false "; got != want {
		t.Errorf("listed %q, want %q", got, want)
	}
	if got := listed(t, service, profile.Person{Org: "acme", User: "bob"}); got != "" {
		t.Errorf("another person sees %q", got)
	}
	records, err := service.Conversations.Records(t.Context(), ann, "a", 2)
	if err != nil || len(records) != 2 || records[0].Message.Text != "more" || records[1].Status != "running" || records[1].ID != long.ID {
		t.Errorf("%+v, %v", records, err)
	}
	if r := records[0].Reply; r.Trace != "abc" || len(r.Tools) != 1 || r.Tools[0].Result != "42" {
		t.Errorf("stored %+v", r)
	}
	if records, err = service.Conversations.Records(t.Context(), ann, "b", 9); err != nil || len(records) != 2 || fault.CodeOf(records[1].Err) != fault.Upstream {
		t.Errorf("%+v, %v", records, err)
	}
	if _, err := service.Conversations.ForgetConversation(t.Context(), ann, "a"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("deleted while it is answered: %v", err)
	}
	err = service.Stop(t.Context(), long.ID)
	_, waited := long.Wait(t.Context())
	if err := errors.Join(err, waited); err != nil {
		t.Fatal(err)
	}
	if gone, err := service.Conversations.ForgetConversation(t.Context(), ann, "a"); gone != 3 || err != nil {
		t.Errorf("%d, %v", gone, err)
	}
	if got, want := listed(t, service, ann), "b:other:2:false "; got != want || fmt.Sprint(forgotten) != "[ann/a]" {
		t.Errorf("listed %q, want %q; forgotten %q", got, want, forgotten)
	}
}

// TestHistoryOfEachConversation checks that messages in one conversation do not remove those
// of another.
func TestHistoryOfEachConversation(t *testing.T) {
	t.Parallel()
	service, _ := open(t, store(t), echo, turn.Options{})
	if err := service.Profiles.Settings.Set(t.Context(), profile.Org("acme"), profile.Settings{HistoryStored: 2, HistorySent: 1}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "b", "b"} {
		answered(t, sayIn(t, service, id, "hi"))
	}
	if got, want := listed(t, service, ann), "b:hi:2:false a:hi:1:false "; got != want {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// TestAttachmentsOfAPerson checks the limits of what is stored of a person, and that a
// deleted conversation makes space.
func TestAttachmentsOfAPerson(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]conversation.StoredMedia{"count": {Count: 2}, "bytes": {Bytes: 9}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, _ := open(t, store(t), echo, turn.Options{Conversations: conversation.Options{Stored: limit}})
			send := func(id string, p profile.Person, count int) error {
				m := conversation.Message{Person: p, Conversation: id, Text: "look", RequestID: "r"}
				for range count {
					m.Attach(llm.Media{Name: "a.png", MIME: "image/png", Data: []byte("1234")})
				}
				turn, err := service.Send(t.Context(), m)
				if err == nil {
					answered(t, turn)
				}
				return err
			}
			if err := send("a", ann, 2); err != nil {
				t.Fatal(err)
			}
			if err := send("b", ann, 1); fault.CodeOf(err) != fault.Limit {
				t.Errorf("beyond the limit: %v", err)
			}
			if err := errors.Join(send("b", ann, 0), send("b", profile.Person{Org: "acme", User: "bob"}, 2)); err != nil {
				t.Errorf("without attachments, and of another person: %v", err)
			}
			if _, err := service.Conversations.ForgetConversation(t.Context(), ann, "a"); err != nil {
				t.Fatal(err)
			}
			if err := send("b", ann, 2); err != nil {
				t.Errorf("after deleting: %v", err)
			}
		})
	}
}
