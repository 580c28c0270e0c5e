package chatapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/failure"
	"github.com/luanette/luanette/internal/chat/turn"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/delivery"
)

const (
	progressTime  = 10 * time.Second // for one webhook about progress
	progressGrace = time.Second      // for all that wait when the turn has ended
	progressQueue = 1000             // that wait for a slow receiver; further ones are left out

	minThrottle, defaultThrottle, maxThrottle = 1, 5, 3600 // seconds
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
	RetryAfter int       `json:"retry_after_ms,omitempty" doc:"of an error: when to send the message again"`
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

func (d *Handler) checkCallback(q Request) error {
	u, err := url.Parse(q.CallbackURL)
	switch {
	case q.CallbackURL == "":
		return fault.New(fault.InvalidParams, "progress_callback_url is required")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fault.New(fault.InvalidParams, "progress_callback_url must begin with http:// or https://")
	case q.ProgressMode != "" && !slices.Contains(progressModes, q.ProgressMode):
		return fault.New(fault.InvalidParams, "progress_mode must be one of %s, not %q", strings.Join(progressModes, ", "), q.ProgressMode)
	case q.ThrottleSeconds != nil && (*q.ThrottleSeconds < minThrottle || *q.ThrottleSeconds > maxThrottle):
		return fault.New(fault.InvalidParams, "progress_throttle_seconds must be %d to %d, not %v", minThrottle, maxThrottle, *q.ThrottleSeconds)
	}
	if err := d.options.CheckHost(u.Hostname()); err != nil {
		return fault.New(fault.InvalidParams, "progress_callback_url: %s", fault.From(err).Msg).
			WithHint("use an address on the internet, or ask who runs this server to allow %s: [mcp] allowed_hosts in luanette.toml", u.Hostname())
	}
	return nil
}

// withoutCallback are the warnings about fields that only /chat/callback uses.
func (q Request) withoutCallback() (warnings []string) {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"progress_callback_url", q.CallbackURL != ""},
		{"progress_mode", q.ProgressMode != ""},
		{"progress_throttle_seconds", q.ThrottleSeconds != nil},
	} {
		if field.given {
			warnings = append(warnings, fmt.Sprintf("the field %s was ignored: only POST /api/v1/chat/callback uses it", field.name))
		}
	}
	return warnings
}

func (q Request) target() target {
	t := target{URL: q.CallbackURL, Mode: q.ProgressMode, ChatID: q.ChatID, ThreadID: q.ThreadID, Throttle: defaultThrottle * time.Second}
	if t.Mode == "" {
		t.Mode = "iteration"
	}
	if q.ThrottleSeconds != nil {
		t.Throttle = time.Duration(*q.ThrottleSeconds * float64(time.Second))
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
	if to, _ := targetOf(t); to.URL != q.CallbackURL {
		return Accepted{}, fault.New(fault.Conflict, "the message was sent before with another callback, or none").WithHint("GET /api/v1/chat/%s waits for its answer", t.ID)
	}
	d.callBack(t)
	return Accepted{t.ID, r.id, q.MessageKey}, nil
}

// delivery is GET /api/v1/chat/{message}/callback.
func (d *Handler) delivery(r *request) (delivery.Status, error) {
	t, own, err := d.turn(r.Request)
	if err == nil && !own {
		err = noMessage(t.ID)
	}
	if err != nil {
		return delivery.Status{}, err
	}
	return d.options.Deliveries.Get(r.Context(), t.ID)
}

// deliverAgain is POST /api/v1/chat/{message}/callback.
func (d *Handler) deliverAgain(r *request) (delivery.Status, error) {
	status, err := d.delivery(r)
	if err != nil {
		return status, err
	}
	if err := d.options.Deliveries.Again(r.Context(), status.ID); err != nil {
		return status, err
	}
	return d.options.Deliveries.Get(r.Context(), status.ID)
}

// Deliveries lists deliveries.
type Deliveries struct {
	Callbacks []delivery.Status `json:"callbacks"`
}

// maxDeliveries is how many deliveries are listed.
const maxDeliveries = 200

// deliveries is GET …/callbacks.
func (d *Handler) deliveries(r *request) (list Deliveries, err error) {
	state := delivery.State(r.URL.Query().Get("state"))
	if known := []delivery.State{"", delivery.Waiting, delivery.Delivered, delivery.Failed}; !slices.Contains(known, state) {
		return list, fault.New(fault.InvalidParams, "state must be waiting, delivered or failed, not %q", state)
	}
	list.Callbacks, err = d.options.Deliveries.List(r.Context(), callbacks, r.person.Org, state, maxDeliveries)
	if list.Callbacks == nil {
		list.Callbacks = []delivery.Status{}
	}
	return list, err
}

// targetOf returns where the outcome of a turn is sent, if the sender wants that.
func targetOf(t *turn.Turn) (to target, wanted bool) {
	err := json.Unmarshal(t.Message.Note, &to)
	return to, err == nil && to.URL != ""
}

// callbacks are the deliveries of this package.
const callbacks = "chat"

// Deliver returns what stores the outcome of a turn as a delivery, in the transaction that
// stores the outcome.
func Deliver(store *delivery.Store, now func() time.Time) func(context.Context, *db.Tx, *turn.Turn, agent.Reply, error) error {
	return func(ctx context.Context, tx *db.Tx, t *turn.Turn, reply agent.Reply, failed error) error {
		to, wanted := targetOf(t)
		if !wanted {
			return nil
		}
		answer := responseOf(t, t.Message.RequestID, reply)
		hook := Webhook{Type: "complete", Text: strings.Join(answer.Responses, "\n"), Response: &answer}
		if failed != nil {
			f, _ := failureOf(failure.OfTurn(failed))
			hook = Webhook{Type: "error", Error: f.Message, Code: f.Code, RetryAfter: f.RetryAfter}
		}
		body, err := json.Marshal(hook.of(t, to, now()))
		if err != nil {
			return err
		}
		p := t.Message.Person
		return store.Add(ctx, tx, delivery.Delivery{ID: t.ID, Kind: callbacks, Org: p.Org, Person: p.User, Topic: t.Message.Conversation, URL: to.URL, Body: body})
	}
}

// of returns a webhook with what all of a turn have.
func (h Webhook) of(t *turn.Turn, to target, now time.Time) Webhook {
	m := t.Message
	h.UserID, h.MessageID, h.RequestID, h.MessageKey, h.Timestamp = m.Person.User, t.ID, m.RequestID, m.Key, now.UTC()
	h.ChatID, h.ThreadID = to.ChatID, to.ThreadID
	return h
}

// channel is how outcomes are sent.
func (d *Handler) channel() delivery.Channel {
	client := &http.Client{Transport: d.options.Webhooks, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ready := func(id string) bool {
		_, follows := d.followed.Load(id)
		return !follows
	}
	header := http.Header{}
	if token := d.options.Token; !token.IsZero() {
		header.Set("Authorization", "Bearer "+token.Reveal())
		header.Set("X-Engine-Token", token.Reveal()) // the receivers of the program that this one replaces read it
	}
	trusted := func(to *url.URL) bool { return slices.Contains(d.receivers, originOf(to)) }
	return delivery.Channel{Client: client, Secret: d.options.Secret, Header: header, Trusted: trusted, Ready: ready}
}

// callBack sends the progress of a turn to its callback in the background, if it has one. Its
// outcome is a delivery.
func (d *Handler) callBack(t *turn.Turn) {
	to, wanted := targetOf(t)
	if !wanted {
		return
	}
	if _, follows := d.followed.LoadOrStore(t.ID, true); follows {
		return // the message was sent again
	}
	d.hooks.Go(func() {
		ctx, stop := context.WithCancel(d.ending)
		c := &caller{handler: d, turn: t, to: to, sent: d.options.Clock.Now(), queue: make(chan Webhook, progressQueue)}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			c.run(ctx)
		}()
		began := time.Now()
		reply, err := t.Follow(d.ending, func(e agent.Event) error {
			if !t.Replayed() { // otherwise whoever answered it has sent its progress
				c.handle(e)
			}
			return nil
		})
		if !t.Replayed() && !errors.As(err, &turn.Unfollowed{}) { // the delivery has the outcome
			d.report(d.ending, waiting{t.Message.RequestID, t, began, false}, reply, err)
		}
		close(c.queue)
		grace := time.AfterFunc(progressGrace, stop)
		<-sent
		grace.Stop()
		stop()
		d.followed.Delete(t.ID)
		d.options.Deliveries.Wake()
	})
}

// caller sends the progress of one turn, each webhook once.
type caller struct {
	handler *Handler
	turn    *turn.Turn
	to      target
	block   int
	text    string // not sent yet
	sent    time.Time
	queue   chan Webhook
}

// run sends what is queued until the queue is closed or ctx ends.
func (c *caller) run(ctx context.Context) {
	for hook := range c.queue {
		if ctx.Err() != nil {
			return
		}
		if err := c.post(ctx, hook); err != nil && ctx.Err() == nil {
			c.handler.options.Log.WarnContext(ctx, "webhook_error", "event", "webhook_error", "request_id", c.turn.Message.RequestID, "type", hook.Type, "error", err)
		}
	}
}

// handle sends what the mode asks for.
func (c *caller) handle(e agent.Event) {
	if c.to.Mode == "complete" {
		return
	}
	switch e := e.(type) {
	case agent.Status:
		c.flush()
		c.notify(Webhook{Type: "status", Message: e.Message})
	case agent.ToolUse:
		c.flush() // the text before it
	case agent.Text:
		if e.Block > c.block {
			c.block = e.Block
			c.flush()
		}
		c.text += e.Text
		c.send(c.due())
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
func (c *caller) flush() {
	c.sent = c.handler.options.Clock.Now()
	c.send(len(c.text))
}

// send sends the first bytes of the buffered text.
func (c *caller) send(n int) {
	if n == 0 {
		return
	}
	text := c.text[:n]
	c.text, c.sent = c.text[n:], c.handler.options.Clock.Now()
	c.notify(Webhook{Type: "progress", Text: text})
}

// notify queues a webhook.
func (c *caller) notify(hook Webhook) {
	select {
	case c.queue <- hook.of(c.turn, c.to, c.handler.options.Clock.Now()):
	default:
	}
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

func (c *caller) post(ctx context.Context, hook Webhook) error {
	ctx, cancel := context.WithTimeout(ctx, progressTime)
	defer cancel()
	body, err := json.Marshal(hook)
	if err != nil {
		return err
	}
	channel := c.handler.channel()
	_, err = channel.Post(ctx, c.to.URL, c.turn.ID+"_"+rand.Text(), hook.Timestamp, body, nil)
	return err
}
