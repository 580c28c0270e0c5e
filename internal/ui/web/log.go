package web

import (
	"context"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/core/event"
)

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
