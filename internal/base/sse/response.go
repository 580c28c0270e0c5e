package sse

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// acceptTime is how long a client may take to accept an event.
const acceptTime = 30 * time.Second

// Response writes events to one client as they happen. It is safe for concurrent use.
type Response struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu    sync.Mutex // guards the rest, and the writer
	begun bool
	last  time.Time
}

// NewResponse sets the headers of a stream. Nothing is sent until the first event, so
// that a request can still be refused with another status.
func NewResponse(w http.ResponseWriter) *Response {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	return &Response{w: w, control: http.NewResponseController(w)}
}

// Send sends an event with data only.
func (r *Response) Send(data []byte) error { return r.write(Append(nil, Event{Data: data})) }

// Comment sends a comment, which clients skip.
func (r *Response) Comment(text string) error { return r.write(AppendComment(nil, text)) }

func (r *Response) write(event []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.last = true, time.Now()
	_ = r.control.SetWriteDeadline(r.last.Add(acceptTime)) // not every connection supports it
	if _, err := r.w.Write(event); err != nil {
		return err
	}
	return r.control.Flush()
}

// Begun tells whether anything was sent.
func (r *Response) Begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// WhileSilent calls send in every interval in which nothing was sent, until it fails or
// ctx ends; the returned function waits for that.
func (r *Response) WhileSilent(ctx context.Context, interval time.Duration, send func() error) (wait func()) {
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if r.silent(interval) && send() != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return work.Wait
}

func (r *Response) silent(interval time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.last) >= interval/2
}
