package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/phrase"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

const (
	// eventBuffer is how many events a reader may fall behind. Further events are
	// dropped, and an event.missed event says how many.
	eventBuffer = 4096
	// writeTimeout is how long one write to a reader may take.
	writeTimeout = 30 * time.Second
	// retryAfter is how long a browser waits before it reconnects.
	retryAfter = time.Second
	// maxTypes is how many event types one reader may name.
	maxTypes = 64
)

// events streams events as server-sent events. The id of each is its number, a dot and
// the process that counted it. ?types= takes types and prefixes
// ("job.finished,upstream.*"). A reader that reconnects continues after Last-Event-ID
// or ?after=; ?after=all begins with all buffered events, with ?newest=N only the newest N
// of them. A reader whose id comes from
// another process, or from this one before a restart, gets event.missed and then all
// buffered events. ?follow=false ends the stream after the buffered events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	options, err := s.subscription(r)
	if err != nil {
		return err
	}
	follow, err := wantsFollow(r)
	if err != nil {
		return err
	}
	skip, err := s.skipped(r, options)
	if err != nil {
		return err
	}
	options.IncludeRemote = true
	sub := s.options.Bus.SubscribeAs(principal.Of(r.Context()), options)
	defer sub.Close()
	if s.readers.Add(1) == 1 && s.options.OnFirstReader != nil {
		s.options.OnFirstReader()
	}
	defer s.readers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	out := stream{w: w, control: http.NewResponseController(w), process: s.options.Process, skip: skip}
	out.printf("retry: %d\n\n", retryAfter.Milliseconds())
	if !follow {
		out.writeQueued(sub)
		_ = out.flush() // the client may have disconnected
		return nil
	}
	for out.flush() == nil && s.writeNext(r.Context(), sub, &out) {
	}
	return nil
}

// subscription reads the types and the position that a request asks for.
func (s *Server) subscription(r *http.Request) (event.Options, error) {
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
			WithHint("set after to the id of the last event seen, or to all")
	}
	o.After = seen
	if named && process != s.options.Process {
		o.After = event.OtherBus
	}
	return o, nil
}

// skipped returns the number of the last buffered event that a request does not want.
func (s *Server) skipped(r *http.Request, o event.Options) (uint64, error) {
	text := r.URL.Query().Get("newest")
	if text == "" || o.After != event.All {
		return 0, nil
	}
	newest, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fault.New(fault.InvalidParams, "newest %q is not a number", text)
	}
	last := s.options.Bus.Last()
	return last - min(newest, last), nil
}

// wantsFollow reports whether a request asks for future events too.
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

// writeNext writes all queued events, or a comment if there is none for the keepalive
// interval. It reports whether the stream continues.
func (s *Server) writeNext(ctx context.Context, sub *event.Subscription, out *stream) bool {
	wait, cancel := context.WithTimeout(ctx, s.options.Keepalive)
	defer cancel()
	e, err := sub.Next(wait)
	switch {
	case err == nil:
		out.writeEvent(e)
		out.writeQueued(sub)
		return true
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		out.printf(": keepalive\n\n")
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
	skip    uint64 // events up to this number are not written
	err     error
}

func (s *stream) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

// writeQueued writes the events that wait in the subscription's buffer.
func (s *stream) writeQueued(sub *event.Subscription) {
	for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
		s.writeEvent(e)
	}
}

// writeEvent writes one event. Newlines are escaped in JSON, so that data is one line.
func (s *stream) writeEvent(e event.Event) {
	if e.Seq <= s.skip {
		return
	}
	data, err := encode(e)
	if err != nil { // a payload that cannot be encoded must not end the stream
		data, _ = json.Marshal(map[string]any{"seq": e.Seq, "time": e.Time, "type": e.Type, "error": err.Error()})
	}
	id := strconv.FormatUint(e.Seq, 10)
	if s.process != "" {
		id += "." + s.process
	}
	s.printf("id: %s\ndata: %s\n\n", id, data)
}

// encode returns an event as JSON, with its description for people.
func encode(e event.Event) ([]byte, error) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, err
	}
	full := struct {
		event.Event
		Data json.RawMessage `json:"data"`
		Line *phrase.Line    `json:"said,omitempty"`
	}{Event: e, Data: data}
	if e.Type != "tool.call_started" && e.Type != "log.line" { // frequent, and shown without a description
		if line := phrase.Of(e.Type, data); line.Text != "" {
			full.Line = &line
		}
	}
	return json.Marshal(full)
}

// flush sends what was written. A reader that accepts nothing for writeTimeout is
// disconnected.
func (s *stream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection supports deadlines

	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}

// LogLine is the event of one log record.
type LogLine struct {
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"facts,omitempty"`
}

// EventType is "log.line".
func (LogLine) EventType() string { return "log.line" }

// maxAttr is how many bytes of one attribute's value are published.
const maxAttr = 1 << 10

// LogHandler is a slog.Handler that publishes records as events. It accepts all
// levels: the logger in front of it chooses the records.
type LogHandler struct {
	bus    *event.Bus
	prefix string // of open groups
	attrs  []slog.Attr
}

// NewLogHandler returns a handler that publishes on bus.
func NewLogHandler(bus *event.Bus) *LogHandler { return &LogHandler{bus: bus} }

// Enabled reports true.
func (l *LogHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle publishes a record. Values with a LogValue method, such as secrets, are
// resolved first.
func (l *LogHandler) Handle(_ context.Context, r slog.Record) error {
	line := LogLine{Time: r.Time, Level: r.Level.String(), Message: r.Message, Attrs: map[string]string{}}
	for _, attr := range l.attrs {
		line.add("", attr)
	}
	r.Attrs(func(attr slog.Attr) bool {
		line.add(l.prefix, attr)
		return true
	})
	l.bus.Publish(line)
	return nil
}

// add adds an attribute; groups become dotted names.
func (l *LogLine) add(prefix string, attr slog.Attr) {
	value := attr.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if attr.Key != "" {
			prefix += attr.Key + "."
		}
		for _, inner := range value.Group() {
			l.add(prefix, inner)
		}
		return
	}
	text := value.String()
	if len(text) > maxAttr {
		text = text[:maxAttr] + "…"
	}
	l.Attrs[prefix+attr.Key] = text
}

// WithAttrs returns a handler that adds attributes to every record.
func (l *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *l
	more.attrs = append([]slog.Attr{}, l.attrs...)
	for _, attr := range attrs {
		attr.Key = l.prefix + attr.Key
		more.attrs = append(more.attrs, attr)
	}
	return &more
}

// WithGroup returns a handler that puts name and a dot before the names of attributes.

func (l *LogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	more := *l
	more.prefix += name + "."
	return &more
}

// calls reports the calls of the last hour, or of the span that the request names, on
// this node.
func (s *Server) calls(w http.ResponseWriter, r *http.Request) error {
	span := time.Hour
	if text := r.URL.Query().Get("span"); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil || parsed < time.Minute || parsed > 24*time.Hour {
			return fault.New(fault.InvalidParams, "span: %q is not a time between 1m and 24h", text).WithHint("for example span=6h")
		}
		span = parsed
	}
	httpjson.JSON(w, http.StatusOK, s.options.Calls.Report(span, principal.Of(r.Context())))
	return nil
}

// defaultTraces is how many traces are listed if the request has no limit.
const defaultTraces = 100

// traces lists recent traces, newest first.
func (s *Server) traces(w http.ResponseWriter, r *http.Request) error {
	limit := defaultTraces
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fault.New(fault.InvalidParams, "limit %q is not a number above 0", text)
		}
		limit = n
	}
	list := s.options.Traces.List(r.Context(), limit)
	if list == nil {
		list = []telemetry.Trace{}
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"traces": list})
	return nil
}

// trace returns one trace with its spans.
func (s *Server) trace(w http.ResponseWriter, r *http.Request) error {
	whole, found := s.options.Traces.Get(r.Context(), r.PathValue("id"))
	if !found {
		return fault.New(fault.NotFound, "trace %q is not stored", r.PathValue("id")).
			WithHint("more digits may be needed, if another trace begins with the same; only recent traces are stored: hud.recent_traces in luanette.toml sets how many")
	}
	httpjson.JSON(w, http.StatusOK, whole)
	return nil
}
