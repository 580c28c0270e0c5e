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
	Facts   map[string]string `json:"facts,omitempty"`
}

// EventType is "log.line".
func (LogLine) EventType() string { return "log.line" }

// factMost bounds one fact of a log line.
const factMost = 1 << 10

// Logged publishes what is logged as events. It is a slog.Handler for all levels;
// whoever taps the log decides which records reach it.
type Logged struct {
	bus    *event.Bus
	prefix string // of open groups
	facts  []slog.Attr
}

// NewLogged publishes on a bus.
func NewLogged(bus *event.Bus) *Logged { return &Logged{bus: bus} }

// Enabled is true.
func (l *Logged) Enabled(context.Context, slog.Level) bool { return true }

// Handle publishes a record. What hides itself from logs stays hidden.
func (l *Logged) Handle(_ context.Context, r slog.Record) error {
	line := LogLine{Time: r.Time, Level: r.Level.String(), Message: r.Message, Facts: map[string]string{}}
	for _, fact := range l.facts {
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
	if len(text) > factMost {
		text = text[:factMost] + "…"
	}
	l.Facts[prefix+fact.Key] = text
}

// WithAttrs returns a handler that adds facts to every line.
func (l *Logged) WithAttrs(facts []slog.Attr) slog.Handler {
	more := *l
	more.facts = append([]slog.Attr{}, l.facts...)
	for _, fact := range facts {
		fact.Key = l.prefix + fact.Key
		more.facts = append(more.facts, fact)
	}
	return &more
}

// WithGroup returns a handler whose facts have a name before theirs.
func (l *Logged) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	more := *l
	more.prefix += name + "."
	return &more
}
