package web

import (
	"context"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/core/event"
)

// LogLine is something that was logged.
type LogLine struct {
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"facts,omitempty"`
}

// EventType is "log.line".
func (LogLine) EventType() string { return "log.line" }

// maxAttr bounds one fact of a log line.
const maxAttr = 1 << 10

// LogHandler publishes what is logged as events. It is a slog.Handler for all levels;
// whoever taps the log decides which records reach it.
type LogHandler struct {
	bus    *event.Bus
	prefix string // of open groups
	attrs  []slog.Attr
}

// NewLogHandler publishes on a bus.
func NewLogHandler(bus *event.Bus) *LogHandler { return &LogHandler{bus: bus} }

// Enabled is true.
func (l *LogHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle publishes a record. What hides itself from logs stays hidden.
func (l *LogHandler) Handle(_ context.Context, r slog.Record) error {
	line := LogLine{Time: r.Time, Level: r.Level.String(), Message: r.Message, Attrs: map[string]string{}}
	for _, fact := range l.attrs {
		line.add("", fact)
	}
	r.Attrs(func(fact slog.Attr) bool {
		line.add(l.prefix, fact)
		return true
	})
	l.bus.Publish(line)
	return nil
}

// add flattens groups into dotted names.
func (l *LogLine) add(prefix string, fact slog.Attr) {
	value := fact.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if fact.Key != "" {
			prefix += fact.Key + "."
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
	l.Attrs[prefix+fact.Key] = text
}

// WithAttrs returns a handler that adds facts to every line.
func (l *LogHandler) WithAttrs(facts []slog.Attr) slog.Handler {
	more := *l
	more.attrs = append([]slog.Attr{}, l.attrs...)
	for _, fact := range facts {
		fact.Key = l.prefix + fact.Key
		more.attrs = append(more.attrs, fact)
	}
	return &more
}

// WithGroup returns a handler whose facts have a name before theirs.
func (l *LogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	more := *l
	more.prefix += name + "."
	return &more
}
