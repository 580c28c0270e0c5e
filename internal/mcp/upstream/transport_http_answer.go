package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// readJSON reads a response that is not a stream, and closes it.
func (t *httpTransport) readJSON(id wire.ID, r *http.Response) (wire.Message, error) {
	defer r.Body.Close()
	body, err := readBody(r, t.limit)
	if err != nil {
		return wire.Message{}, err
	}
	kind := mediaType(r)
	if kind == wire.ContentJSON {
		m, err := parse(body)
		switch {
		case err == nil && m.IsResponse() && (m.ID == id || m.ID == wire.NullID && m.Error != nil):
			return m, nil
		case r.StatusCode < 300:
			return wire.Message{}, fmt.Errorf("answer is not a response to the request: %s", excerpt(body))
		}
	}
	if r.StatusCode < 300 {
		return wire.Message{}, fmt.Errorf("answer is %q, not MCP: %s", kind, excerpt(body))
	}
	return wire.Message{}, newStatusError(r, body)
}

// readStream reads events up to the response. If a legacy stream ends before, it
// is resumed, provided that the server numbers its events.
func (t *httpTransport) readStream(ctx context.Context, id wire.ID, body io.ReadCloser) (wire.Message, error) {
	last := ""
	for {
		events := sse.NewReader(body, t.limit)
		m, err := t.readUntil(id, events)
		if err == nil {
			t.drain(body)
			return m, nil
		}
		body.Close()
		if events.LastID() != "" {
			last = events.LastID()
		}
		if ctx.Err() != nil || last == "" || t.modern() || errors.Is(err, wire.ErrTooLarge) {
			return wire.Message{}, fmt.Errorf("answer ended early: %w", err)
		}
		if err := clock.Real().Sleep(ctx, positive(events.Retry(), 200*time.Millisecond)); err != nil {
			return wire.Message{}, err
		}
		if body, err = t.openStream(ctx, last); err != nil {
			// Without the chain: ErrNotSent would be about the GET, not about the call.
			return wire.Message{}, errors.New("answer ended early: " + err.Error())
		}
	}
}

// readUntil reads a stream up to the response to id. It passes on the requests and
// notifications before it.
func (t *httpTransport) readUntil(id wire.ID, events *sse.Reader) (wire.Message, error) {
	for {
		e, err := events.Next()
		if err != nil {
			return wire.Message{}, err
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		m, err := parse(e.Data)
		switch {
		case err != nil:
			t.hooks.Garbage(excerpt(e.Data))
		case !m.IsResponse():
			t.hooks.Received(id, m)
		case m.ID == id:
			return m, nil
		}
	}
}

// drain reads the end of a stream in the background, so that its connection can
// be reused. The call does not wait for it.
func (t *httpTransport) drain(body io.ReadCloser) {
	limit := time.AfterFunc(t.drainTime, func() { body.Close() })
	started := t.life.run(func(context.Context) {
		_, _ = io.CopyN(io.Discard, body, 64<<10)
		limit.Stop()
		body.Close()
	})
	if !started {
		body.Close()
	}
}
