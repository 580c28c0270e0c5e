package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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

// Limits of a response.
const (
	mostResponse   = 64 << 20
	mostDimensions = 16 << 10
	mostErrorText  = 300
)

type embedRequest struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type embedResponse struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// embed asks the endpoint for the vectors of texts.
func (m *Model) embed(ctx context.Context, texts []string) ([]Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	body, err := json.Marshal(embedRequest{m.options.Model, texts, "float"})
	if err != nil {
		return nil, err
	}
	raw, err := m.post(ctx, body)
	if err != nil {
		return nil, err
	}
	return vectorsOf(raw, len(texts))
}

func (m *Model) post(ctx context.Context, body []byte) (raw []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.options.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "search.embeddings.url")
	}
	request.Header.Set("Content-Type", "application/json")
	if !m.options.Key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+m.options.Key.Reveal())
	}
	response, err := m.options.Client.Do(request)
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "embed texts")
	}
	defer func() { _ = response.Body.Close() }() // it was read
	raw, err = io.ReadAll(io.LimitReader(response.Body, mostResponse))
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "embed texts")
	}
	if response.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Upstream, "embed texts: status %d: %s", response.StatusCode, raw[:min(len(raw), mostErrorText)])
	}
	return raw, nil
}

// vectorsOf reads a response with so many vectors.
func vectorsOf(raw []byte, count int) ([]Vector, error) {
	var r embedResponse
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read embeddings")
	}
	vectors := make([]Vector, count)
	for _, d := range r.Data {
		if d.Index < 0 || d.Index >= count || len(d.Embedding) > mostDimensions {
			return nil, fault.New(fault.Upstream, "read embeddings: unexpected index %d with %d dimensions", d.Index, len(d.Embedding))
		}
		vectors[d.Index] = quantize(d.Embedding)
	}
	for i, v := range vectors {
		if v == nil {
			return nil, fault.New(fault.Upstream, "read embeddings: text %d of %d has none", i+1, count)
		}
	}
	return vectors, nil
}

// Vector is the direction of an embedding, with a byte per dimension: enough to compare
// directions, in a quarter of the memory. nil has none.
type Vector = *direction

type direction struct {
	values []int8
	length float32
}

// quantize scales a vector so that its greatest component fits; nil if it has no
// direction.
func quantize(components []float32) Vector {
	greatest := float32(0)
	for _, c := range components {
		if c != c || math.IsInf(float64(c), 0) {
			return nil
		}
		greatest = max(greatest, c, -c)
	}
	if greatest == 0 {
		return nil
	}
	values := make([]int8, len(components))
	for i, c := range components {
		values[i] = int8(math.Round(float64(c / greatest * 127)))
	}
	return directionOf(values)
}

func directionOf(values []int8) Vector {
	length := math.Sqrt(float64(product(values, values)))
	if length == 0 {
		return nil
	}
	return &direction{values, float32(length)}
}

// cosine is how similar two directions are, from -1 to 1; 0 if they are of different
// models.
func cosine(a, b Vector) float32 {
	if a == nil || b == nil || len(a.values) != len(b.values) {
		return 0
	}
	return float32(product(a.values, b.values)) / (a.length * b.length)
}

// product is the scalar product of two vectors of the same length, which is at most
// mostDimensions: the sum fits.
func product(a, b []int8) int32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += int32(x[0]) * int32(y[0])
		s1 += int32(x[1]) * int32(y[1])
		s2 += int32(x[2]) * int32(y[2])
		s3 += int32(x[3]) * int32(y[3])
	}
	for ; i < len(a); i++ {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

func (d *direction) bytes() []byte {
	out := make([]byte, len(d.values))
	for i, x := range d.values {
		out[i] = byte(x)
	}
	return out
}

func vectorFrom(raw []byte) Vector {
	values := make([]int8, min(len(raw), mostDimensions))
	for i := range values {
		values[i] = int8(raw[i])
	}
	return directionOf(values)
}
