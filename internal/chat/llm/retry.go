package llm

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
)

// Retry is how long to go on with an endpoint that does not answer.
type Retry struct {
	Attempts     int           // tries in all (4)
	First        time.Duration // the first wait is up to this long, then twice as long each time (1 s)
	Max          time.Duration // the longest wait of our own choice (30 s)
	MaxTotalWait time.Duration // for all waits together; an endpoint that asks for more is given up (3 min)
	// Sleep waits; nil really does. It returns early with ctx's error.
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

// Wait tells that an endpoint could not answer and will be asked again.
type Wait struct {
	Attempt int // that failed, from 1
	Delay   time.Duration
	Status  int // HTTP status, or 0 when there was none
}

// patient is a Model that asks its provider again where that can help: when the
// endpoint is busy or the connection failed, and no text was handed on yet.
type patient struct {
	provider
	about  About
	retry  Retry
	prices prices
}

func (m *patient) About() About { return m.about }

func (m *patient) Answer(ctx context.Context, p Prompt, emit func(Delta)) (Answer, error) {
	if emit == nil {
		emit = func(Delta) {}
	}
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		told := false
		answer, err := m.try(ctx, p, func(d Delta) { told = told || d.Text != ""; emit(d) })
		answer.Attempts = attempt
		answer.Usage.Cost = m.prices.cost(m.about.Model, answer.Usage)
		if err == nil {
			return answer, nil
		}
		f := failureOf(ctx, err)
		delay := m.delay(f, attempt)
		if told || !f.again || attempt == m.retry.Attempts || waited+delay > m.retry.MaxTotalWait {
			return answer, f.fault(m.about, attempt)
		}
		emit(Delta{Wait: &Wait{attempt, delay, f.status}})
		waited += delay
		if err := m.retry.Sleep(ctx, delay); err != nil {
			return answer, failureOf(ctx, err).fault(m.about, attempt)
		}
	}
}

// delay is what the endpoint asks for, else a growing time with chance in it, so
// that many who were turned away together do not come back together.
func (m *patient) delay(f *failure, attempt int) time.Duration {
	if f.after > 0 {
		return f.after
	}
	return backoff.Policy{First: m.retry.First, Max: m.retry.Max, Jitter: 1}.Delay(attempt)
}
