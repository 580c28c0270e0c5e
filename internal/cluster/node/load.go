package node

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// Load is how much a node has to do.
type Load struct {
	CallsPerMinute uint64 `json:"calls_per_minute"` // of tools
	InFlight       int    `json:"in_flight"`
	Jobs           int    `json:"jobs"` // running here
	Sessions       int    `json:"sessions"`
	Streams        int64  `json:"streams"` // readers of events
	Goroutines     int    `json:"goroutines"`
	MemoryMB       uint64 `json:"memory_mb"`
}

// AddProcess adds what the runtime knows of this process.
func (l *Load) AddProcess() {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	l.Goroutines = runtime.NumGoroutine()
	l.MemoryMB = (samples[0].Value.Uint64() - samples[1].Value.Uint64()) >> 20
}

// RateMeter measures how much a counter grew in the last minute. The zero value is ready
// to use.
type RateMeter struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at    time.Time
	total uint64
}

// LastMinute records the counter and returns how much it grew within a minute.
func (m *RateMeter) LastMinute(now time.Time, total uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) >= time.Minute {
		m.samples = m.samples[1:]
	}
	if len(m.samples) == 0 || now.Sub(m.samples[len(m.samples)-1].at) >= time.Second/2 {
		m.samples = append(m.samples, sample{now, total})
	}
	return total - min(total, m.samples[0].total)
}
