package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
)

var (
	picture = llm.Media{MIME: "image/png", Data: []byte("\x89PNG picture")}
	chart   = llm.Media{MIME: "image/jpeg", Data: []byte("\xff\xd8 chart")}
	report  = llm.Media{Name: "report.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7")}
	voice   = llm.Media{MIME: "audio/wav", Data: []byte("RIFF")}
)

// withMedia is a question with an image, a file and a sound, and a tool's result with an
// image.
func withMedia() llm.Prompt {
	p := question
	p.Messages = []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{{Text: "what is this?"}, {Media: &picture}, {Media: &report}, {Media: &voice}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Use: &llm.Use{ID: "u1", Name: "weather"}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.Result{ID: "u1", Text: "rain", Media: []llm.Media{chart}}}}},
	}
	return p
}

// TestMedia checks that images, files and sounds arrive in the format of each API.
func TestMedia(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{
		"anthropic": "0 image image/png \x89PNG picture|0 document application/pdf %PDF-1.7|2 image image/jpeg \xff\xd8 chart",
		"openai":    "0 image_url image/png \x89PNG picture|0 file application/pdf %PDF-1.7|0 input_audio wav RIFF|2 image_url image/jpeg \xff\xd8 chart",
	} {
		server := llmtest.Play(t, llmtest.Step{Expect: []string{"rain"}, Say: []string{"ok"}})
		m, _ := open(t, provider, server.URL)
		if _, err := m.Answer(t.Context(), withMedia(), nil); err != nil {
			t.Fatalf("%s: %v", provider, err)
		}
		var got []string
		for _, one := range server.Requests()[0].Media {
			got = append(got, fmt.Sprintf("%d %s %s %s", one.Turn, one.Kind, one.MIME, one.Data))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, want %q", provider, got, want)
		}
		if first := server.Requests()[0].Turns[0].Text; provider == "anthropic" && !strings.Contains(first, "audio/wav, 4 bytes") {
			t.Errorf("nothing stands for the sound: %s", first)
		}
	}
}

// TestRefusedMedia checks that an endpoint that refuses a request with images is asked
// again without them.
func TestRefusedMedia(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		server := llmtest.Play(t,
			llmtest.Step{Status: 400, Kind: "invalid_request_error", Text: "image input is not supported"},
			llmtest.Step{Expect: []string{"rain", "image/jpeg, 8 bytes: the model's endpoint does not take it"}, Say: []string{"ok"}})
		m, waits := open(t, provider, server.URL)
		answer, err := m.Answer(t.Context(), withMedia(), nil)
		if err != nil || !answer.WithoutMedia || len(waits.taken) != 0 {
			t.Errorf("%s: %+v, %v", provider, answer, err)
		}
	}
}

// TestKindsThatAModelTakes checks what is sent to models by default and if configured.
func TestKindsThatAModelTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options llm.Options
		want    string
	}{
		"anthropic":  {llm.Options{}, "[true true false true]"},
		"openai":     {llm.Options{Provider: "openai", Model: "m"}, "[true true false true]"},
		"hears":      {llm.Options{Provider: "openai", Model: "gpt-4o-audio-preview"}, "[true true true true]"},
		"configured": {llm.Options{Media: []llm.Kind{}}, "[false false false true]"},
	} {
		tt.options.BaseURL = "http://127.0.0.1:1"
		m, err := llm.Open(tt.options)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, media := range []llm.Media{picture, report, voice, {MIME: "text/csv"}} {
			got = append(got, m.About().Takes(media.Kind()))
		}
		if fmt.Sprint(got) != tt.want || m.About().Takes(llm.Media{MIME: "application/zip"}.Kind()) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
