package hub

import (
	"context"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// writeResponse writes a round to its client: as JSON when the answer is all there is,
// as a stream as soon as something comes before it or the call has been quiet
// for long. It returns when the round is over or the client has left, and tells
// which.
func (h *Hub) writeResponse(w http.ResponseWriter, r *http.Request, rd *response, prime bool, started func()) (gone bool) {
	if rd.jsonOnly {
		return h.writeJSONResponse(w, r, rd)
	}
	quiet := time.NewTimer(h.opts.Limits.Quiet)
	defer quiet.Stop()
	select {
	case <-rd.done():
	case <-rd.out.changed():
	case <-quiet.C:
	case <-r.Context().Done():
		return true
	}
	if !rd.beginStream() {
		writeJSON(w, rd.status, rd.answer)
		return false
	}
	return h.writeStream(w, r, rd, prime, started)
}

// writeStream writes a round as events, until it is over or the client has left, and
// tells which.
func (h *Hub) writeStream(w http.ResponseWriter, r *http.Request, rd *response, prime bool, started func()) (gone bool) {
	if started != nil {
		started()
	}
	me := rd.out.attach()
	events := h.newEventWriter(w, rd.out.name)
	if prime {
		events.prime(0)
	}
	return h.copyStream(r.Context(), events, rd.out, me) == clientDisconnected
}

// writeJSONResponse serves a client that did not say it reads streams.
func (h *Hub) writeJSONResponse(w http.ResponseWriter, r *http.Request, rd *response) (gone bool) {
	select {
	case <-rd.done():
		writeJSON(w, rd.status, rd.answer)
		return false
	case <-r.Context().Done():
		return true
	}
}

// ending is why a pump stopped.
type ending int

const (
	streamEnded    ending = iota // everything was written
	streamCut                    // the client shall come back for the rest
	readerReplaced               // another connection of the client reads on
	clientDisconnected
)

// copyStream writes a stream until it ends, its client leaves, or another connection
// takes over.
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
	writeTimeout time.Duration // with one write
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

// retryAfter is what clients are told to wait before they reconnect.
const retryAfter = time.Second

// prime writes an event without data, whose id a client can reconnect with
// before it saw a message after number.
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

// flush writes what was gathered. Only while it writes there is a deadline: a
// stream may be silent for as long as it likes.
func (w *eventWriter) flush() error {
	// Not every ResponseWriter has deadlines; without one a write just takes longer.
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
	_, _ = w.Write(body) // a client that left learns nothing from our error
}

// typeJSON is shared by all answers.
var typeJSON = []string{wire.ContentJSON}
