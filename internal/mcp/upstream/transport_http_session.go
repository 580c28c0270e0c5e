package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// sessionLost ends the transport if the response says that the server no longer
// knows the session. The protocol has 404 for that; servers derived from a popular
// example answer 400 and mention the session.
func (t *httpTransport) sessionLost(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusNotFound:
	case http.StatusBadRequest:
		body := r.Body
		start, _ := io.ReadAll(io.LimitReader(body, maxExcerpt))
		if !bytes.Contains(bytes.ToLower(start), []byte("session")) {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(start), body), body}
			return false
		}
	default:
		return false
	}
	t.mu.Lock()
	t.lost = true
	t.mu.Unlock()
	t.life.end(ErrSessionLost)
	return true
}

// openStream opens a GET stream, after the event last unless that is empty.
func (t *httpTransport) openStream(ctx context.Context, last string) (io.ReadCloser, error) {
	t.mu.Lock()
	header := t.protocolHeader()
	t.mu.Unlock()
	if last != "" {
		header.Set(wire.HeaderLastEventID, last)
	}
	return t.client.openStream(ctx, header)
}

// listenTimeout is how long a connection attempt waits for the stream of
// notifications before it goes on without it.
const listenTimeout = 250 * time.Millisecond

// Listen keeps the GET stream of the legacy era open, on which servers send
// notifications that belong to no request. It returns when the stream is open or
// the server has none, or after listenTimeout.
func (t *httpTransport) Listen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	opened := sync.OnceFunc(cancel)
	if t.life.run(func(life context.Context) { t.keepListening(life, opened) }) {
		<-ctx.Done()
	}
}

// keepListening opens the stream again and again until ctx ends or the server has
// none.
func (t *httpTransport) keepListening(ctx context.Context, opened func()) {
	last, reopened := "", false
	for failures := 1; ; failures++ {
		began := time.Now()
		body, err := t.openStream(ctx, last)
		opened()
		var status *statusError
		if errors.As(err, &status) && status.Code < 500 {
			return // usually 405 or 404: this server has no such stream
		}
		delay := time.Duration(0)
		if err == nil {
			if reopened {
				t.hooks.Relist()
			}
			reopened = true
			last, delay = t.readNotifications(body, last)
		}
		if ctx.Err() != nil {
			return
		}
		if delay == 0 {
			if time.Since(began) > time.Second {
				failures = 1
			}
			delay = backoff.Policy{}.Delay(failures)
			t.hooks.CheckHealth()
		}
		if clock.Real().Sleep(ctx, delay) != nil {
			return
		}
	}
}

// readNotifications reads a stream until it ends. It returns the id of its last
// event, and the delay after which the server wants the next request, if the
// server ended the stream and said so.
func (t *httpTransport) readNotifications(body io.ReadCloser, last string) (id string, retry time.Duration) {
	events := sse.NewReader(body, t.limit)
	_, err := t.readUntil("", events)
	body.Close()
	if errors.Is(err, io.EOF) {
		retry = events.Retry()
	}
	return cmp.Or(events.LastID(), last), retry
}
