package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
)

// Messages about the server for the model.
type (
	// eventBatch holds the events of one batchInterval, so that many events cause few redraws.
	eventBatch []serverEvent
	// connected says that the event stream is open.
	connected struct{}
	// disconnected says that the stream failed, and when the next attempt is.
	disconnected struct {
		err  error
		next time.Time
	}
)

const (
	batchInterval = 33 * time.Millisecond // how long events are collected into one batch
	minRetry      = 500 * time.Millisecond
	maxRetry      = 5 * time.Second
	maxBatch      = 1000
)

// followEvents sends the server's events as messages until ctx ends. After a
// disconnect it reconnects and continues after the last event.
func followEvents(ctx context.Context, s *server, now func() time.Time, send func(tea.Msg)) {
	after, delay := "all", minRetry
	for ctx.Err() == nil {
		body, err := s.events(ctx, after, true)
		if err == nil {
			send(connected{})
			delay = minRetry
			after, err = readBatches(ctx, body, after, send)
		}
		if ctx.Err() != nil {
			return
		}
		send(disconnected{err, now().Add(delay)})
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, maxRetry)
	}
}

// readBatches reads a stream to its end and sends its events in batches. It returns the
// id of the last event.
func readBatches(ctx context.Context, body io.ReadCloser, after string, send func(tea.Msg)) (string, error) {
	defer func() { _ = body.Close() }()
	read := make(chan serverEvent, maxBatch)
	var failed error
	go func() { // ends with the stream, which ends with ctx
		defer close(read)
		failed = readEvents(ctx, body, &after, read)
	}()
	for first := range read {
		batch := eventBatch{first}
		gathered := time.After(batchInterval)
	more:
		for len(batch) < maxBatch {
			select {
			case e, open := <-read:
				if !open {
					break more
				}
				batch = append(batch, e)
			case <-gathered:
				break more
			}
		}
		send(batch)
	}
	return after, failed
}

func readEvents(ctx context.Context, body io.Reader, after *string, into chan<- serverEvent) error {
	for events := sse.NewReader(body, 0); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return fault.New(fault.Unavailable, "the server closed the connection")
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "read events")
		}
		*after = e.ID
		if t, ok := parseEvent(e); ok {
			select {
			case into <- t:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// parseEvent decodes an event; events that cannot be decoded are ignored.
func parseEvent(e sse.Event) (serverEvent, bool) {
	var t serverEvent
	return t, json.Unmarshal(e.Data, &t) == nil
}
