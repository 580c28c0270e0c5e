package hootclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// ToolCall is one call of a tool.
type ToolCall struct {
	ID          hootproto.ID // unique
	Name        string
	Arguments   json.RawMessage // a JSON object; nil means {}
	Traceparent string
}

// exitTimeout is how long to wait for the end of a backend that takes no more
// calls.
const exitTimeout = 10 * time.Second

// Ready returns the catalog and the name of the backend.
func (c *Client) Ready(ctx context.Context) (catalog hootproto.Catalog, service string, err error) {
	answer, err := c.roundTrip(ctx, hootproto.New(hootproto.Ready, ""))
	if err != nil {
		return catalog, "", err
	}
	if err := answer.Decode(&catalog); err != nil {
		return catalog, "", err
	}
	protocol := catalog.Newest()
	if protocol == "" {
		return catalog, "", fault.New(fault.Upstream, "the backend uses protocol %.20q, not %s", catalog.Protocol, strings.Join(hootproto.Protocols(), " or ")).
			WithHint("the catalog must name the protocol; see docs/backends.md")
	}
	content := hootproto.JSON
	if catalog.AcceptsMsgPack {
		content = hootproto.MsgPack
	}
	c.offered.Store(&offer{protocol: protocol, cancels: catalog.AcceptsCancel, content: content})
	return catalog, answer.Service, nil
}

// Call calls a tool. A failure of the tool is part of the Outcome; an error means
// that there was no reply. It wraps ErrNotSent if the backend did not execute the
// call, and is the cause of ctx if that ended; otherwise the call may or may not
// have been executed.
func (c *Client) Call(ctx context.Context, request ToolCall) (hootproto.Outcome, error) {
	f := hootproto.Message{Command: hootproto.Request, ID: request.ID, Traceparent: request.Traceparent}
	answer, err := c.request(ctx, f, hootproto.Call{Name: request.Name, Arguments: request.Arguments})
	if err != nil {
		return hootproto.Outcome{}, err
	}
	var outcome hootproto.Outcome
	if err := answer.Decode(&outcome); err != nil {
		return hootproto.Outcome{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if e := outcome.Err; e != nil && e.Code == hootproto.CodeUnavailable && e.Unexecuted() {
		c.leave(true)
		return outcome, c.waitForEnd(ctx, e)
	}
	return outcome, nil
}

// Request sends a Request with any body and returns the body of its Reply.
func (c *Client) Request(ctx context.Context, id hootproto.ID, body json.RawMessage) (json.RawMessage, error) {
	answer, err := c.request(ctx, hootproto.Message{Command: hootproto.Request, ID: id}, body)
	if err != nil {
		return nil, err
	}
	return answer.JSON()
}

// request sends f with a body and waits for the reply. If ctx ends first, it cancels the
// request at the backend.
func (c *Client) request(ctx context.Context, f hootproto.Message, body any) (hootproto.Message, error) {
	f, err := f.With(c.offered.Load().content, body)
	if err != nil {
		return f, NotSent(err)
	}
	answer, err := c.roundTrip(ctx, f)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrNotSent) {
		c.cancel(f.ID)
	}
	return answer, err
}

// roundTrip sends a message and waits for its answer.
func (c *Client) roundTrip(ctx context.Context, f hootproto.Message) (hootproto.Message, error) {
	answer, err := c.expect(ctx, f.ID)
	if err != nil {
		return f, err
	}
	defer c.forget(f.ID)
	if err := c.post(ctx, f); err != nil {
		return f, NotSent(err)
	}
	select {
	case r := <-answer:
		return r.frame, r.err
	case <-ctx.Done():
		return f, context.Cause(ctx)
	}
}

// expect registers a request. A backend that has announced its end gets no more
// requests, but pending ones are waited for.
func (c *Client) expect(ctx context.Context, id hootproto.ID) (<-chan reply, error) {
	c.mu.Lock()
	leaving, ended := c.leaving, c.err
	answer := make(chan reply, 1)
	if ended == nil && !leaving {
		c.waiting[id] = answer
	}
	c.mu.Unlock()
	switch {
	case ended != nil:
		return nil, NotSent(ended)
	case leaving:
		return nil, c.waitForEnd(ctx, errLeft)
	}
	return answer, nil
}

func (c *Client) forget(id hootproto.ID) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
	c.leave(false)
}

// waitForEnd waits until the connection to a backend that takes no more calls has
// ended, so that a retry reaches its successor.
func (c *Client) waitForEnd(ctx context.Context, why error) error {
	timer := time.NewTimer(exitTimeout)
	defer timer.Stop()
	select {
	case <-c.life.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	return NotSent(why)
}

// cancel tells the backend that the client no longer waits for that reply.
func (c *Client) cancel(id hootproto.ID) {
	if !c.offered.Load().cancels {
		return
	}
	f, err := hootproto.New(hootproto.Request, "").With(c.offered.Load().content, hootproto.Cancel{RequestID: id.String()})
	if err != nil {
		return
	}
	c.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = c.post(ctx, f) // if it is lost, the backend only does needless work
	})
}

// heartbeat is a heartbeat that the backend has not answered yet.
type heartbeat struct {
	id       hootproto.ID
	answered chan struct{} // closed with the answer
}

// checkInterval is how often to look whether the backend has sent anything else.
const checkInterval = time.Second

// Heartbeat sends a heartbeat, unless one is unanswered, and waits until the backend
// answers or ctx ends. Any other message counts as an answer. There is never more than
// one unanswered heartbeat: repeating it would not help over a connection that loses
// nothing, and a peer that speaks HOOT01 could take a late answer for a question.
func (c *Client) Heartbeat(ctx context.Context) error {
	began := time.Now()
	beat, err := c.sendHeartbeat(ctx)
	if err != nil {
		return NotSent(err)
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-beat.answered:
			return nil
		case <-ticker.C:
			if c.LastReceived().After(began) {
				return nil
			}
		case <-c.life.Done():
			return NotSent(c.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendHeartbeat returns the unanswered heartbeat, or sends one.
func (c *Client) sendHeartbeat(ctx context.Context) (*heartbeat, error) {
	c.mu.Lock()
	beat, ended := c.beat, c.err
	if beat != nil || ended != nil {
		c.mu.Unlock()
		return beat, ended
	}
	message := hootproto.New(hootproto.Heartbeat, "")
	beat = &heartbeat{id: message.ID, answered: make(chan struct{})}
	c.beat = beat
	c.mu.Unlock()
	err := c.post(ctx, message)
	if err != nil {
		c.mu.Lock()
		c.beat = nil
		c.mu.Unlock()
	}
	return beat, err
}

// handleHeartbeat takes an answer or answers a question of the backend. In HOOT01 they
// look alike: what is not the awaited answer is dropped, because answering a late answer
// would make both ends answer each other for ever.
func (c *Client) handleHeartbeat(f hootproto.Message) {
	if f.Protocol == hootproto.Hoot02 && f.Command == hootproto.Heartbeat {
		c.run(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_ = c.post(ctx, f.HeartbeatReply()) // if lost, the backend asks again
		})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.beat != nil && c.beat.id == f.ID {
		close(c.beat.answered)
		c.beat = nil
	}
}
