package embedding

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of queries.
const (
	mostCached    = 1024 // queries whose vectors are remembered
	mostAsking    = 4    // requests for queries at a time
	longestQuery  = 2000 // bytes
	failuresToOff = 3    // one after the other, after which the endpoint is left alone
	offFor        = 30 * time.Second
)

// queries are the vectors of queries, and how the endpoint is doing.
type queries struct {
	mu       sync.Mutex
	known    map[string]Vector
	order    []string // of known, oldest first
	asking   int
	failures int
	off      time.Time // until when the endpoint is left alone
}

// Queries returns the vectors of queries that are known or arrive in time; possibly none.
// An answer that comes too late is remembered for the next time.
func (m *Model) Queries(ctx context.Context, texts []string) []Vector {
	if m == nil {
		return nil
	}
	wanted := make([]string, len(texts))
	for i, text := range texts {
		wanted[i] = strings.ToValidUTF8(text[:min(len(text), longestQuery)], "")
	}
	if done := m.ask(wanted); done != nil {
		timer := time.NewTimer(m.options.Wait)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return m.queries.found(wanted)
}

// ask asks for the vectors of queries that are not known. It returns what is closed when
// the answer is there; nil if nothing is to be waited for.
func (m *Model) ask(texts []string) <-chan struct{} {
	q := &m.queries
	q.mu.Lock()
	defer q.mu.Unlock()
	missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" || q.known[text] != nil })
	if len(missing) == 0 || q.asking >= mostAsking || m.options.Clock.Now().Before(q.off) {
		return nil
	}
	done := make(chan struct{})
	if !m.start(func() { defer close(done); m.answer(missing) }) {
		return nil
	}
	q.asking++
	return done
}

// answer asks the endpoint, and remembers the answer or the failure.
func (m *Model) answer(texts []string) {
	input := make([]string, len(texts))
	for i, text := range texts {
		input[i] = m.options.QueryPrefix + text
	}
	vectors, err := m.embed(m.ctx, input)
	q := &m.queries
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking--
	switch {
	case err == nil:
		q.failures = 0
		for i, v := range vectors {
			q.add(texts[i], v)
		}
	case m.ctx.Err() == nil:
		q.failed(m, err)
	}
}

// failed counts a failure; mu is held.
func (q *queries) failed(m *Model, err error) {
	if q.failures++; q.failures < failuresToOff {
		return
	}
	if q.failures == failuresToOff {
		m.options.Log.Warn("no embeddings: searches use words only", "error", err)
	}
	q.off = m.options.Clock.Now().Add(offFor)
}

// add remembers a vector; mu is held.
func (q *queries) add(text string, v Vector) {
	if q.known[text] != nil {
		return
	}
	if len(q.order) >= mostCached {
		delete(q.known, q.order[0])
		q.order = slices.Delete(q.order, 0, 1)
	}
	q.known[text] = v
	q.order = append(q.order, text)
}

func (q *queries) found(texts []string) (vectors []Vector) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, text := range texts {
		if v := q.known[text]; v != nil {
			vectors = append(vectors, v)
		}
	}
	return vectors
}
