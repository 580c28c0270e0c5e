package chatapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
)

const (
	webhookTime     = 10 * time.Second // for one of them
	webhookTries    = 3                // of the last one; pieces on the way are not worth a second
	defaultThrottle = 5 * time.Second
)

var progressModes = []string{"complete", "iteration", "periodic", "sentence"}

// Accepted is the answer to a message that is answered by webhook.
type Accepted struct {
	MessageID  string `json:"message_id"`
	MessageKey string `json:"message_key,omitempty"`
}

// Webhook is what is told to a callback.
type Webhook struct {
	Type       string    `json:"type" doc:"status, progress, complete or error"`
	UserID     string    `json:"user_id"`
	MessageID  string    `json:"message_id"`
	MessageKey string    `json:"message_key,omitempty"`
	ChatID     string    `json:"chat_id,omitempty"`
	ThreadID   string    `json:"thread_id,omitempty"`
	Timestamp  time.Time `json:"timestamp"`
	Message    string    `json:"message,omitempty"`
	Text       string    `json:"text,omitempty"`
	Error      string    `json:"error,omitempty"`
	Code       string    `json:"code,omitempty"`
	Response   *Response `json:"response,omitempty"`
}

// target is where and how to call back; it is kept with the message, so that a
// turn made again after a restart still finds its way.
type target struct {
	URL      string        `json:"url"`
	Mode     string        `json:"mode"`
	Throttle time.Duration `json:"throttle"`
	ChatID   string        `json:"chat_id,omitempty"`
	ThreadID string        `json:"thread_id,omitempty"`
}

func (q Request) checkCallback() error {
	u, err := url.Parse(q.CallbackURL)
	switch {
	case q.CallbackURL == "":
		return fault.New(fault.InvalidParams, "progress_callback_url is required")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fault.New(fault.InvalidParams, "progress_callback_url must begin with http:// or https://")
	case q.ProgressMode != "" && !slices.Contains(progressModes, q.ProgressMode):
		return fault.New(fault.InvalidParams, "progress_mode must be one of %s, not %q", strings.Join(progressModes, ", "), q.ProgressMode)
	case q.ThrottleSeconds < 0 || q.ThrottleSeconds > 3600:
		return fault.New(fault.InvalidParams, "progress_throttle_seconds must be 1 to 3600")
	}
	return nil
}

func (q Request) target() target {
	t := target{URL: q.CallbackURL, Mode: q.ProgressMode, ChatID: q.ChatID, ThreadID: q.ThreadID, Throttle: defaultThrottle}
	if t.Mode == "" {
		t.Mode = "iteration"
	}
	if q.ThrottleSeconds > 0 {
		t.Throttle = max(time.Second, time.Duration(q.ThrottleSeconds*float64(time.Second)))
	}
	return t
}

// callback is POST /api/v1/chat/callback.
func (d *Handler) callback(w http.ResponseWriter, r *http.Request) error {
	q, m, err := d.message(w, r, true)
	if err != nil {
		return err
	}
	if m.Note, err = json.Marshal(q.target()); err != nil {
		return err
	}
	t, err := d.say(r, m)
	if err != nil {
		return err
	}
	d.callBack(t)
	httpjson.JSON(w, http.StatusAccepted, Accepted{t.ID, q.MessageKey})
	return nil
}

// callBack follows a turn in the background and tells its callback, if it has one.
func (d *Handler) callBack(t *conversation.Turn) {
	var to target
	if len(t.Message.Note) == 0 || json.Unmarshal(t.Message.Note, &to) != nil || to.URL == "" {
		return
	}
	d.hooks.Go(func() {
		c := &caller{door: d, turn: t, to: to, sent: d.options.Clock.Now()}
		answer, err := d.follow(d.ending, t, func(e agent.Event) error { c.hears(d.ending, e); return nil })
		switch {
		case d.ending.Err() != nil:
		case err != nil:
			f, _ := failureOf(err)
			c.tell(d.ending, Webhook{Type: "error", Error: f.Message, Code: f.Code}, webhookTries)
		default:
			c.tell(d.ending, Webhook{Type: "complete", Text: strings.Join(answer.Responses, "\n"), Response: &answer}, webhookTries)
		}
	})
}

// caller tells one callback about one turn.
type caller struct {
	door  *Handler
	turn  *conversation.Turn
	to    target
	block int
	text  string // not told yet
	sent  time.Time
}

// hears tells what the mode asks for.
func (c *caller) hears(ctx context.Context, e agent.Event) {
	if c.to.Mode == "complete" {
		return
	}
	switch e := e.(type) {
	case agent.Status:
		c.flush(ctx)
		c.tell(ctx, Webhook{Type: "status", Message: e.Message}, 1)
	case agent.ToolUse:
		c.flush(ctx) // what was said before it
	case agent.Text:
		if e.Block > c.block {
			c.block = e.Block
			c.flush(ctx)
		}
		c.text += e.Text
		c.send(ctx, c.due())
	}
}

// due is how much of what is held back has waited long enough.
func (c *caller) due() int {
	switch c.to.Mode {
	case "periodic":
		if c.door.options.Clock.Now().Sub(c.sent) >= c.to.Throttle {
			return len(c.text)
		}
	case "sentence":
		if ends := sentenceEnd().FindAllStringIndex(c.text, -1); len(ends) > 0 {
			return ends[len(ends)-1][1]
		}
	}
	return 0
}

// sentenceEnd is where a sentence ends: not before the space after it, without which
// it may be the point in a number.
var sentenceEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?]["'”’)\]]*\s+`) })

// flush tells all the text that was held back.
func (c *caller) flush(ctx context.Context) {
	c.sent = c.door.options.Clock.Now()
	c.send(ctx, len(c.text))
}

// send tells the first bytes of the text that was held back.
func (c *caller) send(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	text := c.text[:n]
	c.text, c.sent = c.text[n:], c.door.options.Clock.Now()
	c.tell(ctx, Webhook{Type: "progress", Text: text}, 1)
}

// tell sends a webhook. One that nobody takes is logged and never breaks a turn.
func (c *caller) tell(ctx context.Context, hook Webhook, tries int) {
	m := c.turn.Message
	hook.UserID, hook.MessageID, hook.MessageKey, hook.Timestamp = m.Person.User, c.turn.ID, m.Key, c.door.options.Clock.Now().UTC()
	hook.ChatID, hook.ThreadID = c.to.ChatID, c.to.ThreadID
	body, err := json.Marshal(hook)
	for try := 1; err == nil; try++ {
		failed := c.post(ctx, body)
		if failed == nil {
			return
		}
		if try >= tries || c.door.options.Clock.Sleep(ctx, time.Duration(try)*time.Second) != nil {
			err = failed
		}
	}
	c.door.options.Log.WarnContext(ctx, "webhook_error", "event", "webhook_error", "request_id", m.RequestID, "type", hook.Type, "error", err)
}

func (c *caller) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if token := c.door.options.Token; !token.IsZero() {
		r.Header.Set("X-Engine-Token", token.Reveal())
	}
	client := http.Client{Transport: c.door.options.Webhooks, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fault.New(fault.Upstream, "the callback answered %s", answer.Status)
	}
	return nil
}
