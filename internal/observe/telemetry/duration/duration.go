// Package duration records how long things took, in seconds. Making the set of
// attributes of a measurement costs more than recording it, so the sets are kept.
package duration

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// maxKinds limits how many sets of attributes are kept. The SDK itself counts what
// exceeds such a number under otel.metric.overflow.
const maxKinds = 2000

// The boundaries of the semantic conventions.
var (
	HTTP = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	MCP  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// Kind is what a histogram tells apart. It is comparable, and its attributes depend on
// nothing else. It should have few values: not texts that a client can choose freely.
type Kind interface {
	comparable
	Attributes() []attribute.KeyValue
}

// Options describe a histogram.
type Options struct {
	Name        string // such as "mcp.server.operation.duration"
	Description string
	Boundaries  []float64 // nil: those of the SDK
}

// Histogram records durations by kind. It is safe for concurrent use.
type Histogram[K Kind] struct {
	seconds metric.Float64Histogram

	mu   sync.RWMutex
	sets map[K][]metric.RecordOption // one each: a slice, so that Record makes none
}

// New creates a histogram; a nil meter records nothing.
func New[K Kind](meter metric.Meter, o Options) *Histogram[K] {
	if meter == nil {
		meter = noop.Meter{}
	}
	options := []metric.Float64HistogramOption{metric.WithUnit("s"), metric.WithDescription(o.Description)}
	if o.Boundaries != nil {
		options = append(options, metric.WithExplicitBucketBoundaries(o.Boundaries...))
	}
	seconds, err := meter.Float64Histogram(o.Name, options...)
	if err != nil {
		seconds, _ = noop.Meter{}.Float64Histogram(o.Name) // never fails
	}
	return &Histogram[K]{seconds: seconds, sets: map[K][]metric.RecordOption{}}
}

// Enabled reports whether Record does anything.
func (h *Histogram[K]) Enabled(ctx context.Context) bool { return h.seconds.Enabled(ctx) }

// Record records a duration.
func (h *Histogram[K]) Record(ctx context.Context, kind K, took time.Duration) {
	if h.seconds.Enabled(ctx) {
		h.seconds.Record(ctx, took.Seconds(), h.set(kind)...)
	}
}

func (h *Histogram[K]) set(kind K) []metric.RecordOption {
	h.mu.RLock()
	set, known := h.sets[kind]
	h.mu.RUnlock()
	if known {
		return set
	}
	set = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(kind.Attributes()...))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sets) < maxKinds {
		h.sets[kind] = set
	}
	return set
}

// Texts returns the attributes of pairs of key and value, without those that are empty.
func Texts(pairs ...string) (list []attribute.KeyValue) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return list
}
