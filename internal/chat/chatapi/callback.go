package chatapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/turn"
)

const (
	webhookTime     = 10 * time.Second // for one request
	webhookTries    = 3                // of the last one; earlier pieces are sent once
	defaultThrottle = 5 * time.Second
)

var progressModes = []string{"complete", "iteration", "periodic", "sentence"}

// Accepted is the response to a message that is answered by webhook.
type Accepted struct {
	MessageID  string `json:"message_id"`
	RequestID  string `json:"request_id" doc:"in the log of the server"`
	MessageKey string `json:"message_key,omitempty"`
}

// Webhook is the body of a request to a callback URL.
type Webhook struct {
	Type       string    `json:"type" doc:"status, progress, complete or error"`
	UserID     string    `json:"user_id"`
	MessageID  string    `json:"message_id"`
	RequestID  string    `json:"request_id" doc:"in the log of the server"`
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

// target is where and how to call back. It is stored with the message, so that a turn
// that runs again after a restart can still call back.
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
func (d *Handler) callback(r *request) (Accepted, error) {
	q, m, err := d.message(r, true)
	if err != nil {
		return Accepted{}, err
	}
	if m.Note, err = json.Marshal(q.target()); err != nil {
		return Accepted{}, err
	}
	t, err := d.say(r, m)
	if err != nil {
		return Accepted{}, err
	}
	d.callBack(t)
	return Accepted{t.ID, r.id, q.MessageKey}, nil
}

// callBack follows a turn in the background and calls its callback, if it has one.
func (d *Handler) callBack(t *turn.Turn) {
	var to target
	if len(t.Message.Note) == 0 || json.Unmarshal(t.Message.Note, &to) != nil || to.URL == "" {
		return
	}
	d.hooks.Go(func() {
		c := &caller{handler: d, turn: t, to: to, sent: d.options.Clock.Now()}
		answer, err := d.follow(d.ending, t.Message.RequestID, t, func(e agent.Event) error { c.handle(d.ending, e); return nil })
		switch {
		case d.ending.Err() != nil:
		case err != nil:
			f, _ := failureOf(err)
			c.notify(d.ending, Webhook{Type: "error", Error: f.Message, Code: f.Code}, webhookTries)
		default:
			c.notify(d.ending, Webhook{Type: "complete", Text: strings.Join(answer.Responses, "\n"), Response: &answer}, webhookTries)
		}
	})
}

// caller sends the webhooks of one turn.
type caller struct {
	handler *Handler
	turn    *turn.Turn
	to      target
	block   int
	text    string // not sent yet
	sent    time.Time
}

// handle sends what the mode asks for.
func (c *caller) handle(ctx context.Context, e agent.Event) {
	if c.to.Mode == "complete" {
		return
	}
	switch e := e.(type) {
	case agent.Status:
		c.flush(ctx)
		c.notify(ctx, Webhook{Type: "status", Message: e.Message}, 1)
	case agent.ToolUse:
		c.flush(ctx) // the text before it
	case agent.Text:
		if e.Block > c.block {
			c.block = e.Block
			c.flush(ctx)
		}
		c.text += e.Text
		c.send(ctx, c.due())
	}
}

// due returns how much of the buffered text can be sent.
func (c *caller) due() int {
	switch c.to.Mode {
	case "periodic":
		if c.handler.options.Clock.Now().Sub(c.sent) >= c.to.Throttle {
			return len(c.text)
		}
	case "sentence":
		if ends := sentenceEnd().FindAllStringIndex(c.text, -1); len(ends) > 0 {
			return ends[len(ends)-1][1]
		}
	}
	return 0
}

// sentenceEnd matches the end of a sentence with the space after it, because a point may
// also be part of a number.
var sentenceEnd = lazyregexp.New(`[.!?]["'”’)\]]*\s+`)

// flush sends all buffered text.
func (c *caller) flush(ctx context.Context) {
	c.sent = c.handler.options.Clock.Now()
	c.send(ctx, len(c.text))
}

// send sends the first bytes of the buffered text.
func (c *caller) send(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	text := c.text[:n]
	c.text, c.sent = c.text[n:], c.handler.options.Clock.Now()
	c.notify(ctx, Webhook{Type: "progress", Text: text}, 1)
}

// notify sends a webhook. A failure is logged and does not affect the turn.
func (c *caller) notify(ctx context.Context, hook Webhook, tries int) {
	m := c.turn.Message
	hook.UserID, hook.MessageID, hook.RequestID, hook.MessageKey, hook.Timestamp = m.Person.User, c.turn.ID, m.RequestID, m.Key, c.handler.options.Clock.Now().UTC()
	hook.ChatID, hook.ThreadID = c.to.ChatID, c.to.ThreadID
	body, err := json.Marshal(hook)
	for try := 1; err == nil; try++ {
		failed := c.post(ctx, body)
		if failed == nil {
			return
		}
		if try >= tries || c.handler.options.Clock.Sleep(ctx, time.Duration(try)*time.Second) != nil {
			err = failed
		}
	}
	c.handler.options.Log.WarnContext(ctx, "webhook_error", "event", "webhook_error", "request_id", m.RequestID, "type", hook.Type, "error", err)
}

// originOf returns the origin of an address, always with its port.
func originOf(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// origins returns the origins of addresses.
func origins(addresses []string) (list []string) {
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil { // the configuration was checked
			list = append(list, originOf(u))
		}
	}
	return list
}

func (c *caller) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if token := c.handler.options.Token; !token.IsZero() && slices.Contains(c.handler.receivers, originOf(r.URL)) {
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
		r.Header.Set("X-Engine-Token", token.Reveal()) // the receivers of the program that this one replaces read it
	}
	client := http.Client{Transport: c.handler.options.Webhooks, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
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
