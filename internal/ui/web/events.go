package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/observe/phrase"
)

const (
	// eventBuffer is how many events a reader may be behind before some are dropped
	// and it is told how many.
	eventBuffer = 4096
	// writeTimeout is how long a reader may take to accept what was sent.
	writeTimeout = 30 * time.Second
	// retryAfter is when a browser comes back after the stream broke.
	retryAfter = time.Second
	// maxTypes bounds what one reader may ask for.
	maxTypes = 64
)

// events streams what happens as server-sent events, each with its number as id,
// and behind a dot the process whose number it is. ?types= takes types and
// prefixes ("job.finished,upstream.*"). A reader that was away goes on after
// Last-Event-ID, or ?after=; ?after=all begins with everything that is still kept.
// One that was at another process, or at this one before its restart, is told that
// it missed something, and then all that is kept. ?follow=false ends the stream
// after what is there already.
func (h *Server) events(w http.ResponseWriter, r *http.Request) {
	options, err := h.subscription(r)
	if err != nil {
		httpjson.Error(w, http.StatusBadRequest, err)
		return
	}
	follow, err := wantsFollow(r)
	if err != nil {
		httpjson.Error(w, http.StatusBadRequest, err)
		return
	}
	options.IncludeRemote = true
	sub := h.options.Bus.Subscribe(options)
	defer sub.Close()
	if h.readers.Add(1) == 1 && h.options.OnFirstReader != nil {
		h.options.OnFirstReader()
	}
	defer h.readers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := stream{w: w, control: http.NewResponseController(w), process: h.options.Process}
	s.printf("retry: %d\n\n", retryAfter.Milliseconds())
	if !follow {
		s.writeQueued(sub)
		_ = s.flush() // the reader may be gone; nobody is left to tell
		return
	}
	for s.flush() == nil && h.writeNext(r.Context(), sub, &s) {
	}
}

// subscription reads what a reader asks for.
func (h *Server) subscription(r *http.Request) (event.Options, error) {
	o := event.Options{Buffer: eventBuffer}
	query := r.URL.Query()
	for _, list := range query["types"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" {
				o.Types = append(o.Types, name)
			}
		}
	}
	if len(o.Types) > maxTypes {
		return o, fault.New(fault.InvalidParams, "types names %d types, at most %d are possible", len(o.Types), maxTypes).
			WithHint("use prefixes, such as upstream.*")
	}
	after := query.Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id
	}
	switch after {
	case "":
		return o, nil
	case "all":
		o.After = event.All
		return o, nil
	}
	number, process, named := strings.Cut(after, ".")
	seen, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return o, fault.New(fault.InvalidParams, "%q is not the number of an event", after).
			WithHint("give after the id of the last event seen, or all")
	}
	o.After = seen
	if named && process != h.options.Process {
		o.After = event.OtherBus
	}
	return o, nil
}

// wantsFollow tells whether a reader wants to hear what is yet to happen.
func wantsFollow(r *http.Request) (bool, error) {
	text := r.URL.Query().Get("follow")
	if text == "" {
		return true, nil
	}
	follow, err := strconv.ParseBool(text)
	if err != nil {
		return false, fault.New(fault.InvalidParams, "follow %q is neither true nor false", text)
	}
	return follow, nil
}

// writeNext writes everything that waits, or, after a long silence, a sign of life. It
// reports whether there may be more.
func (h *Server) writeNext(ctx context.Context, sub *event.Subscription, s *stream) bool {
	silence, cancel := context.WithTimeout(ctx, h.options.Keepalive)
	defer cancel()
	e, err := sub.Next(silence)
	switch {
	case err == nil:
		s.writeEvent(e)
		s.writeQueued(sub)
		return true
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		s.printf(": still here\n\n")
		return true
	default:
		return false
	}
}

// stream is one reader's connection.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	process string
	err     error
}

func (s *stream) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

// writeQueued writes the events that are there already.
func (s *stream) writeQueued(sub *event.Subscription) {
	for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
		s.writeEvent(e)
	}
}

// writeEvent writes one event. Newlines are escaped in JSON, so that data is one line.
func (s *stream) writeEvent(e event.Event) {
	data, err := encode(e)
	if err != nil { // a payload that cannot be shown must not end the stream
		data, _ = json.Marshal(map[string]any{"seq": e.Seq, "time": e.Time, "type": e.Type, "error": err.Error()})
	}
	id := strconv.FormatUint(e.Seq, 10)
	if s.process != "" {
		id += "." + s.process
	}
	s.printf("id: %s\ndata: %s\n\n", id, data)
}

// encode is an event with what it says to people.
func encode(e event.Event) ([]byte, error) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, err
	}
	shown := struct {
		event.Event
		Data json.RawMessage `json:"data"`
		Said *phrase.Line    `json:"said,omitempty"`
	}{Event: e, Data: data}
	if e.Type != "tool.call_started" && e.Type != "log.line" { // many, and words already
		if said := phrase.Of(e.Type, data); said.Text != "" {
			shown.Said = &said
		}
	}
	return json.Marshal(shown)
}

// flush sends what was written, and lets no reader hold it up for ever.
func (s *stream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection has one
	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}
