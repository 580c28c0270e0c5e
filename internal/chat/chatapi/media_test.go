package chatapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
	"github.com/luanette/luanette/internal/chat/llm"
)

// painter answers with an image and a page, and says what it got.
func painter(_ context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	reply := agent.Reply{Responses: []string{r.Message}}
	for i, mime := range []string{"image/png", "image/svg+xml"} {
		info := agent.MediaInfo{ID: fmt.Sprintf("1.1.%d", i+1), Tool: "x.paint", MIME: mime, Size: 5}
		emit(agent.Media{MediaInfo: info, Data: []byte("paint")})
		reply.Media = append(reply.Media, info)
	}
	for _, a := range r.Attachments {
		reply.Responses = append(reply.Responses, a.Name+" "+a.MIME+" "+string(a.Data))
	}
	for _, e := range r.History {
		reply.Responses = append(reply.Responses, "before: "+e.User)
	}
	return reply, nil
}

// post sends a message and returns the answer.
func (p fixture) post(t *testing.T, fields map[string]any, header ...string) (int, chatapi.Response, string) {
	t.Helper()
	request := map[string]any{"client_id": "web", "user_id": "ann", "message": "hi"}
	for name, value := range fields {
		request[name] = value
	}
	body, _ := json.Marshal(request)
	status, text, _ := p.ask(t, "POST", "/api/v1/chat", string(body), header...)
	var answer chatapi.Response
	_ = json.Unmarshal([]byte(text), &answer) // errors have another form
	return status, answer, text
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// TestMedia checks that attachments reach the agent, that what tools return can be loaded by
// those who may read the conversation, and that nothing in it runs in a browser.
func TestMedia(t *testing.T) {
	t.Parallel()
	p := open(t, painter, chatapi.Options{})
	attached := map[string]any{"message": "", "attachments": []map[string]string{
		{"name": "a.png", "mime_type": "image/png", "data": encoded("PNG")}, {"data": encoded("%PDF-1.7")},
	}}
	status, answer, text := p.post(t, attached)
	if status != 200 || strings.Join(answer.Responses, "|") != "|a.png image/png PNG| application/pdf %PDF-1.7" || len(answer.Media) != 2 {
		t.Fatalf("%d %s", status, text)
	}
	if _, next, text := p.post(t, nil); !strings.Contains(strings.Join(next.Responses, "|"), "before: [attached: a.png]\n[attached: application/pdf]") {
		t.Errorf("the history has no attachments: %s", text)
	}
	_, image, header := p.ask(t, "GET", answer.Media[0].URL, "")
	if image != "paint" || header.Get("Content-Type") != "image/png" || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%q, %v", image, header)
	}
	if _, _, header := p.ask(t, "GET", answer.Media[1].URL, ""); header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") {
		t.Errorf("a vector image is shown: %v", header)
	}
	if status, body, _ := p.ask(t, "GET", answer.Media[0].URL+"0", ""); status != 404 {
		t.Errorf("%d %s", status, body)
	}
	if gone, _, _ := p.ask(t, "DELETE", "/api/v1/orgs/default/users/ann/history", ""); gone != 200 {
		t.Fatal(gone)
	}
	if status, body, _ := p.ask(t, "GET", answer.Media[0].URL, ""); status != 404 {
		t.Errorf("it stays after its conversation: %d %s", status, body)
	}
}

// TestMediaLimits checks that attachments may be large and the rest of a request not.
func TestMediaLimits(t *testing.T) {
	t.Parallel()
	p := open(t, painter, chatapi.Options{})
	large := func(n int) map[string]any {
		return map[string]any{"attachments": []map[string]string{{"mime_type": "image/png", "data": encoded(strings.Repeat("x", n))}}}
	}
	if status, _, text := p.post(t, large(1_000_000)); status != 200 {
		t.Errorf("1 MB: %d %.200s", status, text)
	}
	if status, _, text := p.post(t, large(20_000_001)); status != 413 || !strings.Contains(text, "20000000") {
		t.Errorf("20 MB: %d %.200s", status, text)
	}
	if status, _, text := p.post(t, map[string]any{"metadata": strings.Repeat("x", 210<<10)}); status != 413 {
		t.Errorf("a long field: %d %.200s", status, text)
	}
}

// TestVoice checks that the same sound with the same key is the same message, although it
// is understood differently.
func TestVoice(t *testing.T) {
	t.Parallel()
	var heard atomic.Int64
	p := open(t, painter, chatapi.Options{Transcribe: func(_ context.Context, sound llm.Media) (string, error) {
		if string(sound.Data) == "noise" {
			return "", nil
		}
		if sound.MIME != "audio/wav" {
			return "", fault.New(fault.Unavailable, "busy").WithHint("try again later")
		}
		return fmt.Sprintf("%s %d", sound.Data, heard.Add(1)), nil
	}})
	voice := func(sound, format string) map[string]any {
		return map[string]any{"message": "", "message_type": "audio", "audio_base64": encoded(sound), "audio_format": format, "message_key": sound}
	}
	_, first, text := p.post(t, voice("hello", "wav"))
	if len(first.Responses) != 1 || first.Responses[0] != "hello 1" || first.Transcript != "hello 1" {
		t.Errorf("%s", text)
	}
	if _, second, text := p.post(t, voice("hello", "wav")); second.MessageID != first.MessageID {
		t.Errorf("another message: %s", text)
	}
	for sound, want := range map[string]string{"noise": "nothing was understood", "bad": "try again later"} {
		expected := map[string]int{"noise": 400, "bad": 503}[sound]
		if status, _, text := p.post(t, voice(sound, "ogg")); status != expected || !strings.Contains(text, "AUDIO_TRANSCRIPTION_ERROR") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", sound, status, text)
		}
	}
	for format, want := range map[string]string{"docx": "use one of aac", "../wav": "use one of aac", "audio/x-wav": "spoken", "AUDIO/WAV; codecs=1": "spoken"} {
		message := voice("spoken", format)
		message["message_key"] = format
		if _, _, text := p.post(t, message); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", format, text, want)
		}
	}
	attached := map[string]any{"message": "listen", "attachments": []map[string]string{{"mime_type": "audio/wav", "data": encoded("song")}}}
	if _, answer, text := p.post(t, attached); answer.Responses[0] != "listen\n\nsong 5" {
		t.Errorf("%s", text)
	}
}
