package hootclient

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/zmq/hootproto"
)

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
