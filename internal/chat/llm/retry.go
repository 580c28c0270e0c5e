package llm

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
)

// Retry configures retries of an endpoint that does not answer.
type Retry struct {
	Attempts     int           // number of attempts (4)
	First        time.Duration // the first wait is up to this long, each further one up to twice as long (1 s)
	Max          time.Duration // longest single wait, unless the endpoint asks for more (30 s)
	MaxTotalWait time.Duration // of all waits together; if the endpoint asks for more, the request fails (3 min)
	// Sleep waits; nil means a real wait. It returns early with ctx's error.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (r Retry) filled() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 4
	}
	if r.First <= 0 {
		r.First = time.Second
	}
	if r.Max <= 0 {
		r.Max = 30 * time.Second
	}
	if r.MaxTotalWait <= 0 {
		r.MaxTotalWait = 3 * time.Minute
	}
	if r.Sleep == nil {
		r.Sleep = clock.Real().Sleep
	}
	return r
}

// Wait announces that an endpoint could not answer and will be asked again.
type Wait struct {
	Attempt int // the failed attempt, from 1
	Delay   time.Duration
	Status  int // HTTP status, or 0
}

// retrying is a Model that retries if that can help: the endpoint is busy or the
// connection failed, and no text was passed on yet.
type retrying struct {
	provider
	about  About
	retry  Retry
	prices prices
}

func (m *retrying) About() About { return m.about }

func (m *retrying) Answer(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	if emit == nil {
		emit = func(Delta) {}
	}
	var waited time.Duration
	without := false
	for attempt := 1; ; attempt++ {
		emitted := false
		answer, err := m.try(ctx, p, func(d Delta) { emitted = emitted || d.Text != ""; emit(d) })
		answer.Attempts, answer.WithoutMedia = attempt, without
		answer.Usage.Cost = m.prices.cost(m.about.Model, answer.Usage)
		if err == nil {
			return answer, nil
		}
		f := failureOf(ctx, err)
		delay := m.delay(f, attempt)
		switch {
		case !emitted && f.refusesMedia(p):
			p, without = p.withoutMedia(), true
			continue
		case emitted, !m.repeats(f, attempt, waited+delay):
			return answer, f.fault(m.about, attempt)
		}
		emit(Delta{Wait: &Wait{attempt, delay, f.status}})
		waited += delay
		if err := m.retry.Sleep(ctx, delay); err != nil {
			return answer, failureOf(ctx, err).fault(m.about, attempt)
		}
	}
}

// repeats reports whether a request is made again after a failure, having waited so long.
func (m *retrying) repeats(f *failure, attempt int, waited time.Duration) bool {
	return f.again && attempt < m.retry.Attempts && waited <= m.retry.MaxTotalWait
}

// delay returns the wait that the endpoint asks for, otherwise a growing one with
// jitter, so that refused clients do not all return at the same time.
func (m *retrying) delay(f *failure, attempt int) time.Duration {
	if f.after > 0 {
		return f.after
	}
	return backoff.Policy{First: m.retry.First, Max: m.retry.Max, Jitter: 1}.Delay(attempt)
}
