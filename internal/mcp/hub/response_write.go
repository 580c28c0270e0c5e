package hub

import (
	"context"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// writeResponse writes a response to its client: as JSON if there is only the answer, as
// a stream if a message comes before it or the answer takes long. It returns true if the
// client disconnected first.
func (h *Hub) writeResponse(w http.ResponseWriter, r *http.Request, resp *response, prime bool, started func()) (disconnected bool) {
	if resp.jsonOnly {
		return h.writeJSONResponse(w, r, resp)
	}
	quiet := time.NewTimer(h.opts.Limits.Quiet)
	defer quiet.Stop()
	select {
	case <-resp.done():
	case <-resp.out.changed():
	case <-quiet.C:
	case <-r.Context().Done():
		return true
	}
	if !resp.beginStream() {
		writeJSON(w, resp.status, resp.answer)
		return false
	}
	return h.writeStream(w, r, resp, prime, started)
}

// writeStream writes a response as events. It returns true if the client disconnected
// first.
func (h *Hub) writeStream(w http.ResponseWriter, r *http.Request, resp *response, prime bool, started func()) (disconnected bool) {
	if started != nil {
		started()
	}
	me := resp.out.attach()
	events := h.newEventWriter(w, resp.out.name)
	if prime {
		events.prime(0)
	}
	return h.copyStream(r.Context(), events, resp.out, me) == clientDisconnected
}

// writeJSONResponse writes the answer alone.
func (h *Hub) writeJSONResponse(w http.ResponseWriter, r *http.Request, resp *response) (disconnected bool) {
	select {
	case <-resp.done():
		writeJSON(w, resp.status, resp.answer)
		return false
	case <-r.Context().Done():
		return true
	}
}

// ending is why copyStream returned.
type ending int

const (
	streamEnded    ending = iota // everything was written
	streamCut                    // the client has to reconnect for the rest
	readerReplaced               // another connection of the client reads the rest
	clientDisconnected
)

// copyStream writes a stream until it ends, its client disconnects, or another connection
// reads it.
func (h *Hub) copyStream(ctx context.Context, w *eventWriter, s *stream, me reader) ending {
	alive := time.NewTicker(h.opts.Limits.KeepAlive)
	defer alive.Stop()
	stirred := s.changed()
	for {
		b := s.take(me)
		w.batch(b)
		switch {
		case w.flush() != nil:
			return clientDisconnected
		case b.ended:
			return streamEnded
		case b.cut:
			return streamCut
		}
		select {
		case <-stirred:
		case <-alive.C:
			w.comment()
		case <-me:
			return readerReplaced
		case <-ctx.Done():
			return clientDisconnected
		}
	}
}

// eventWriter writes messages as server-sent events.
type eventWriter struct {
	w            http.ResponseWriter
	ctl          *http.ResponseController
	name         string        // of the stream; empty: events have no ids
	writeTimeout time.Duration // for one write
	buf          []byte
}

// newEventWriter begins an event stream as the response.
func (h *Hub) newEventWriter(w http.ResponseWriter, name string) *eventWriter {
	header := w.Header()
	header.Set("Content-Type", wire.ContentEvent)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &eventWriter{w: w, ctl: http.NewResponseController(w), name: name, writeTimeout: h.opts.Limits.Write}
}

// retryAfter is how long clients wait before they reconnect.
const retryAfter = time.Second

// prime writes an event without data. Its id lets a client reconnect before it has seen
// a message after number.
func (w *eventWriter) prime(number uint64) {
	w.buf = sse.Append(w.buf, sse.Event{ID: eventID(w.name, number), Retry: retryAfter})
}

func (w *eventWriter) batch(b batch) {
	for i, m := range b.messages {
		e := sse.Event{Name: "message", Data: m}
		if w.name != "" {
			e.ID = eventID(w.name, b.from+uint64(i))
		}
		w.buf = sse.Append(w.buf, e)
	}
	if b.cut && !b.ended {
		last := b.from + uint64(len(b.messages)) - 1
		w.buf = sse.Append(w.buf, sse.Event{ID: eventID(w.name, last), Retry: b.retry})
	}
}

func (w *eventWriter) comment() { w.buf = sse.AppendComment(w.buf, "") }

// flush writes the buffered events. The deadline is for this write only, since a stream
// may be silent for any time.
func (w *eventWriter) flush() error {
	// A ResponseWriter without deadlines is used without one.
	_ = w.ctl.SetWriteDeadline(time.Now().Add(w.writeTimeout))
	if len(w.buf) > 0 {
		if _, err := w.w.Write(w.buf); err != nil {
			return err
		}
		w.buf = w.buf[:0]
	}
	err := w.ctl.Flush()
	_ = w.ctl.SetWriteDeadline(time.Time{})
	return err
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

// typeJSON is shared by all responses.
var typeJSON = []string{wire.ContentJSON}
