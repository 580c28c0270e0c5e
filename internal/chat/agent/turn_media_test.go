package agent_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/core/tool"
)

// camera answers with an image, a sound, an archive and a text.
func camera(context.Context, tool.Call) (tool.Result, error) {
	data := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return tool.Result{Raw: fmt.Appendf(nil, `{"content":[{"type":"text","text":"click"},{"type":"image","mimeType":"image/png","data":%q},
		{"type":"audio","mimeType":"audio/ogg","data":%q},{"type":"resource","resource":{"uri":"file:///a.zip","mimeType":"application/zip","blob":%q}},
		{"type":"image","mimeType":"image/png","data":"?"}]}`, data("a photo"), data("a sound"), data("PK"))}, nil
}

// mediaOf describes the images, sounds and files of a request.
func mediaOf(r llmtest.Request) (list []string) {
	for _, m := range r.Media {
		list = append(list, fmt.Sprintf("%d %s %s", m.Turn, m.MIME, m.Data))
	}
	return list
}

// TestMediaOfTools checks that what a tool shows reaches the model if it takes it, and
// people in any case, also when the turn continues after an interruption.
func TestMediaOfTools(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *llmtest.Server {
		return llmtest.Play(t, llmtest.Step{Use: []llmtest.Use{{Name: "cam__shoot"}}},
			llmtest.Step{Expect: []string{"click", "audio/ogg, 7 bytes: the person sees it, you do not", "application/zip", "[image image/png, 1 bytes: not shown]"}, Say: []string{"nice"}},
			llmtest.Step{Expect: []string{"click", "audio/ogg"}, Say: []string{"nice again"}})
	}
	onBothAPIs(t, start, func(t *testing.T, server *llmtest.Server, model func(*agent.Options)) {
		s := playModel(t, newToolSource().with("cam.shoot", "", camera), server, model)
		journal := &memoryJournal{}
		reply := s.turn(t, "smile", func(r *agent.Request) { r.Journal = journal })
		want := []agent.MediaInfo{
			{ID: "1.1.1", Tool: "cam.shoot", MIME: "image/png", Size: 7}, {ID: "1.1.2", Tool: "cam.shoot", MIME: "audio/ogg", Size: 7},
			{ID: "1.1.3", Tool: "cam.shoot", Name: "file:///a.zip", MIME: "application/zip", Size: 2},
		}
		if !slices.Equal(reply.Media, want) || len(s.media()) != 3 || string(s.media()[0].Data) != "a photo" {
			t.Errorf("people get %+v, %+v", reply.Media, s.media())
		}
		again := s.turn(t, "smile", func(r *agent.Request) { r.Journal = journal })
		if !slices.Equal(again.Media, want) || again.Text() != "nice again" {
			t.Errorf("after an interruption people get %+v", again)
		}
		for _, r := range server.Requests()[1:] {
			if got := mediaOf(r); !slices.Equal(got, []string{"2 image/png a photo"}) {
				t.Errorf("the model got %q", got)
			}
		}
	})
}

// media returns the images, sounds and files that people got.
func (s *fixture) media() (list []agent.Media) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if m, ok := e.(agent.Media); ok {
			list = append(list, m)
		}
	}
	return list
}

// TestAttachments checks that attachments reach the model: text as text, and what it does
// not take as a note, with a notice to the person.
func TestAttachments(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *llmtest.Server {
		return llmtest.Play(t, llmtest.Step{Expect: []string{"a.csv:\n1;2", "The person attached a.zip, application/zip, 2 bytes."}, Say: []string{"ok"}})
	}
	onBothAPIs(t, start, func(t *testing.T, server *llmtest.Server, model func(*agent.Options)) {
		s := playModel(t, newToolSource(), server, model)
		reply := s.turn(t, "", func(r *agent.Request) {
			r.Attachments = []llm.Media{
				{MIME: "image/png", Data: []byte("photo")}, {Name: "a.csv", MIME: "text/csv", Data: []byte("1;2")},
				{Name: "a.zip", MIME: "application/zip", Data: []byte("PK")}, {Name: "r.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
			}
		})
		if got := mediaOf(server.Requests()[0]); !slices.Equal(got, []string{"0 image/png photo", "0 application/pdf %PDF"}) {
			t.Errorf("the model got %q", got)
		}
		if len(reply.Notices) != 1 || reply.Notices[0].Code != "media_not_sent" || !strings.Contains(reply.Notices[0].Message, "a.zip") {
			t.Errorf("notices %+v", reply.Notices)
		}
	})
}

// TestMediaThatDoNotFit checks that large ones are not sent, and that only the newest of
// many are.
func TestMediaThatDoNotFit(t *testing.T) {
	t.Parallel()
	server := llmtest.Play(t, llmtest.Step{Expect: []string{"it is too large"}, Say: []string{"ok"}})
	s := playModel(t, newToolSource(), server)
	s.turn(t, "look", func(r *agent.Request) {
		r.Attachments = []llm.Media{{Name: "big.png", MIME: "image/png", Data: make([]byte, 3_750_001)}}
		for range 6 {
			r.Attachments = append(r.Attachments, llm.Media{MIME: "image/png", Data: make([]byte, 3_600_000)})
		}
	})
	if got := len(server.Requests()[0].Media); got != 5 {
		t.Errorf("the model got %d images", got)
	}
}
