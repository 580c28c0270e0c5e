package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// thinInterval is how often a repeated message is logged.
const thinInterval = 30 * time.Second

// Thinned returns a logger that logs a message with an error of that kind once in a while, and
// how often it was left out meanwhile. While something that everything needs is away, each part
// says so again and again.
func Thinned(log *slog.Logger, kind func(error) bool, c clock.Clock) *slog.Logger {
	return slog.New(thinning{log.Handler(), &thinState{kind: kind, clock: c, messages: map[string]*thinned{}}})
}

type thinning struct {
	slog.Handler
	state *thinState
}

type thinState struct {
	kind  func(error) bool
	clock clock.Clock

	mu       sync.Mutex
	messages map[string]*thinned // messages are constant phrases, so there are few
}

type thinned struct {
	last    time.Time
	leftOut int
}

func (h thinning) Handle(ctx context.Context, r slog.Record) error {
	if !h.state.concerns(r) {
		return h.Handler.Handle(ctx, r)
	}
	leftOut, ok := h.state.admit(r.Message)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// concerns reports whether a record has an error of the kind.
func (s *thinState) concerns(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		is = ok && s.kind(err)
		return !is
	})
	return is
}

// admit reports whether a message is logged now, and how often it was not since the last time.
func (s *thinState) admit(message string) (leftOut int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, now := s.messages[message], s.clock.Now()
	if m == nil {
		m = &thinned{}
		s.messages[message] = m
	}
	if !m.last.IsZero() && now.Sub(m.last) < thinInterval {
		m.leftOut++
		return 0, false
	}
	leftOut, m.leftOut, m.last = m.leftOut, 0, now
	return leftOut, true
}

func (h thinning) WithAttrs(attrs []slog.Attr) slog.Handler {
	return thinning{h.Handler.WithAttrs(attrs), h.state}
}

func (h thinning) WithGroup(name string) slog.Handler {
	return thinning{h.Handler.WithGroup(name), h.state}
}
