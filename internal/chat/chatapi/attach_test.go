package chatapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/chatapi"
)

// halting says something and then waits until it is cancelled.
func halting(ctx context.Context, r agent.Request, emit func(agent.Event)) (agent.Reply, error) {
	if r.Message != "long" {
		return assistant(ctx, r, emit)
	}
	emit(agent.Text{Text: "so far"})
	<-ctx.Done()
	return agent.Reply{Responses: []string{"so far"}}, context.Cause(ctx)
}

// begin sends a message and returns its id and the rest of the stream, from its first
// text on.
func (p fixture) begin(t *testing.T, body string) (id string, lines *bufio.Scanner) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", p.url+"/api/v1/chat/stream", strings.NewReader(body))
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	lines = bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"progress"`) {
		var e chatapi.StreamEvent
		if json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &e) == nil && e.MessageID != "" {
			id = e.MessageID
		}
	}
	if id == "" {
		t.Fatal("no event has a message_id")
	}
	return id, lines
}

// rest returns the last event of a stream.
func rest(lines *bufio.Scanner) (last string) {
	for lines.Scan() {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
	return last
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := open(t, halting, chatapi.Options{})
	id, lines := p.begin(t, say("long"))
	status, body, _ := p.ask(t, "POST", "/api/v1/chat/"+id+"/stop", "")
	if status != 200 || !strings.Contains(body, `"responses":["so far"]`) || !strings.Contains(body, `"stopped"`) {
		t.Errorf("%d %s", status, body)
	}
	if last := rest(lines); !strings.Contains(last, `"complete"`) || !strings.Contains(last, "so far") {
		t.Errorf("the stream ended with %s", last)
	}
	if status, body, _ := p.ask(t, "POST", "/api/v1/chat/msg_none/stop", ""); status != 404 {
		t.Errorf("%d %s", status, body)
	}
}

// TestReattach checks that the events of a message that is being answered, and the answer
// of one that is, can be had by its id, and only by those who may send as that person.
func TestReattach(t *testing.T) {
	t.Parallel()
	p := open(t, halting, chatapi.Options{})
	id, _ := p.begin(t, say("long"))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", p.url+"/api/v1/chat/"+id+"/stream", nil)
	answer, err := httpjsontest.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "so far") {
	}
	p.ask(t, "POST", "/api/v1/chat/"+id+"/stop", "")
	if last := rest(lines); !strings.Contains(last, `"complete"`) {
		t.Errorf("the second stream ended with %s", last)
	}
	if status, body, _ := p.ask(t, "GET", "/api/v1/chat/"+id, ""); status != 200 || !strings.Contains(body, id) {
		t.Errorf("%d %s", status, body)
	}
}

// TestMessageKeys checks the status of a key that belongs to another message.
func TestMessageKeys(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	keyed := func(text string) string {
		body, _ := json.Marshal(map[string]string{"client_id": "web", "user_id": "ann", "message": text, "message_key": "k"})
		return string(body)
	}
	first, body, _ := p.ask(t, "POST", "/api/v1/chat", keyed("one"))
	second, again, _ := p.ask(t, "POST", "/api/v1/chat", keyed("one"))
	if first != 200 || second != 200 || normal(body) != normal(again) {
		t.Errorf("%d %s, then %d %s", first, body, second, again)
	}
	if status, body, _ := p.ask(t, "POST", "/api/v1/chat", keyed("two")); status != 409 || !strings.Contains(body, "another message") {
		t.Errorf("%d %s", status, body)
	}
}

// TestMoved checks what clients get when the server stops during an answer: the key with
// which another node, or this one after its restart, continues.
func TestMoved(t *testing.T) {
	t.Parallel()
	p := open(t, halting, chatapi.Options{})
	id, lines := p.begin(t, say("long"))
	p.service.Close()
	if last := rest(lines); !strings.Contains(last, `"MOVED"`) || !strings.Contains(last, `"message_key":"`+id+`"`) {
		t.Errorf("the stream ended with %s", last)
	}
}

// TestStreamAfterTheEnd checks that a stream that begins after the end has what one had that
// was there.
func TestStreamAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := open(t, assistant, chatapi.Options{})
	said := func(body string) (id string, all []string) {
		for _, e := range events(t, body) {
			all = append(all, fmt.Sprintf("%v %v %v %v %v %v", e["type"], e["message"], e["text"], e["input"], e["result"], e["code"]))
			if first, ok := e["message_id"].(string); ok {
				id = first
			}
		}
		return id, all
	}
	for _, message := range []string{"hi", "model busy"} {
		body := `{"client_id":"w","user_id":"u","message_key":"` + message + `","message":"` + message + `","tool_events":true}`
		_, text, _ := p.ask(t, "POST", "/api/v1/chat/stream", body)
		id, want := said(text)
		if message == "hi" {
			want = slices.Replace(want, 1, 3, "progress <nil> Let me look. <nil> <nil> <nil>") // two pieces of one text
		}
		_, text, _ = p.ask(t, "GET", "/api/v1/chat/"+id+"/stream?tool_events=true", "")
		if _, got := said(text); !slices.Equal(got, want) {
			t.Errorf("%s: later\n%q, want\n%q", message, got, want)
		}
	}
}
