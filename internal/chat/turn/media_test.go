package turn_test

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/turn"
)

// TestMediaSurviveARestart checks that the attachments of a message, and what a tool showed
// before the server stopped, are there afterwards, and that they are part of the message
// that a key belongs to.
func TestMediaSurviveARestart(t *testing.T) {
	t.Parallel()
	url := store(t)
	shown := agent.Media{MediaInfo: agent.MediaInfo{ID: "1.1.1", Tool: "x.y", MIME: "image/png", Size: 4}, Data: []byte("shot")}
	began := make(chan struct{})
	service, leave := open(t, url, func(ctx context.Context, _ agent.Request, emit func(agent.Event)) (agent.Reply, error) {
		emit(shown)
		close(began)
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	}, turn.Options{})
	message := conversation.Message{Person: ann, Key: "k"}
	message.Attach(llm.Media{Name: "a.png", MIME: "image/png", Data: []byte("photo")})
	sent, err := service.Send(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	leave()

	service, _ = open(t, url, func(_ context.Context, r agent.Request, _ func(agent.Event)) (agent.Reply, error) {
		return agent.Reply{Responses: []string{string(r.Attachments[0].Data)}}, nil
	}, turn.Options{})
	if again, err := service.Send(t.Context(), message); err != nil || again.ID != sent.ID || answered(t, again).Text() != "photo" {
		t.Errorf("%+v, %v", again, err)
	}
	if m, err := service.Conversations.Media(t.Context(), sent.ID, "1.1.1"); err != nil || string(m.Data) != "shot" || m.MIME != "image/png" {
		t.Errorf("%+v, %v", m, err)
	}
	other := conversation.Message{Person: ann, Key: "k"}
	other.Attach(llm.Media{Name: "a.png", MIME: "image/png", Data: []byte("another photo")})
	if _, err := service.Send(t.Context(), other); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another image with the same key: %v", err)
	}
}
