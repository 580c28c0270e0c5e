// Package cputime measures the processor time of a goroutine while it computes. Where the
// system tells the time of a thread, the goroutine keeps its thread meanwhile; elsewhere
// the time that passes is taken for it.
package cputime

import (
	"runtime"
	"time"
)

// Meter measures one goroutine. Its methods are called on that goroutine.
type Meter struct {
	last    time.Duration // reading of the clock up to which the time was taken
	running bool
}

// Start begins to measure, or goes on after Stop.
func (m *Meter) Start() {
	runtime.LockOSThread()
	m.last, m.running = now(), true
}

// Lap returns the processor time since Start or the last Lap.
func (m *Meter) Lap() time.Duration {
	if !m.running {
		return 0
	}
	before := m.last
	m.last = now()
	return max(m.last-before, 0)
}

// Stop is a last Lap. A goroutine that waits stops its meter before: a meter that runs
// holds a thread.
func (m *Meter) Stop() time.Duration {
	if !m.running {
		return 0
	}
	took := m.Lap()
	m.running = false
	runtime.UnlockOSThread()
	return took
}
