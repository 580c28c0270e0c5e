package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sse"
)

// The messages that reach the model from the server.
type (
	// eventBatch is a batch of events: a thousand a second are some thirty of them.
	eventBatch []serverEvent
	// isConnected says that the server is there.
	connected struct{}
	// disconnected says that it went away, and when we look again.
	disconnected struct {
		err  error
		next time.Time
	}
)

const (
	batchInterval = 33 * time.Millisecond // how long events are gathered
	minRetry      = 500 * time.Millisecond
	maxRetry      = 5 * time.Second
	maxBatch      = 1000
)

// followEvents tells what happens on the server until ctx ends, and comes back to it
// after it was away, where it left off.
func followEvents(ctx context.Context, s *server, now func() time.Time, tell func(tea.Msg)) {
	after, rest := "all", minRetry
	for ctx.Err() == nil {
		body, err := s.events(ctx, after, true)
		if err == nil {
			tell(connected{})
			rest = minRetry
			after, err = readBatches(ctx, body, after, tell)
		}
		if ctx.Err() != nil {
			return
		}
		tell(disconnected{err, now().Add(rest)})
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
		rest = min(2*rest, maxRetry)
	}
}

// readBatches reads a stream to its end and tells what it says in batches. It returns
// the number of the last event.
func readBatches(ctx context.Context, body io.ReadCloser, after string, tell func(tea.Msg)) (string, error) {
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
		tell(batch)
	}
	return after, failed
}

func readEvents(ctx context.Context, body io.Reader, after *string, into chan<- serverEvent) error {
	for events := sse.NewReader(body, 0); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return fault.New(fault.Unavailable, "the server has ended the connection")
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

// parseEvent takes an event out of its envelope; what cannot be read is left out.
func parseEvent(e sse.Event) (serverEvent, bool) {
	var t serverEvent
	return t, json.Unmarshal(e.Data, &t) == nil
}

func (s *server) upstreams(ctx context.Context, now func() time.Time) ([]upstream, error) {
	var answer struct{ Upstreams []upstream }
	err := s.call(ctx, "mcp_list_upstreams", nil, &answer)
	for i := range answer.Upstreams {
		answer.Upstreams[i].loadedAt = now()
	}
	return answer.Upstreams, err
}

func (s *server) jobs(ctx context.Context) ([]job, error) {
	var answer struct{ Jobs []job }
	err := s.call(ctx, "job_list", map[string]any{"limit": 200}, &answer)
	return answer.Jobs, err
}

// restartNeeded are the settings that were changed and wait for a restart.
func (s *server) restartNeeded(ctx context.Context) ([]plain, error) {
	var answer struct {
		Settings []plain `json:"restart_needed"`
	}
	err := s.request(ctx, http.MethodGet, "health", &answer)
	if fault.CodeOf(err) == fault.NotFound { // a server behind something that hides it
		err = nil
	}
	return answer.Settings, err
}

// pendingApprovals is how many wait for somebody's word.
func (s *server) pendingApprovals(ctx context.Context) (int, error) {
	var answer struct{ Approvals []json.RawMessage }
	err := s.call(ctx, "approval_list", map[string]any{"status": "pending"}, &answer)
	return len(answer.Approvals), err
}
