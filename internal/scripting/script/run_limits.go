package script

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/cputime"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/js"
	"github.com/luanette/luanette/internal/scripting/memory"
	"github.com/luanette/luanette/lua"
)

// runLimits are the limits of a run, with what it shares with others.
type runLimits struct {
	Limits
	share *memory.Share // of the memory of all runs
	meter *cpuMeter     // of the processor time of the organisation; nil if it is not counted
}

// budget returns the limits of a Lua state.
func (l runLimits) budget() lua.Budget {
	b := lua.Budget{Memory: l.Memory, Steps: l.Steps}
	switch {
	case l.meter != nil:
		b.Reserve, b.Tick = l.meter.reserve(l.share), l.meter.Tick
	case l.share != nil:
		b.Reserve = l.share
	}
	return b
}

// CPU counts the processor time that the scripts of organisations use.
type CPU interface {
	// Counts tells whether an organisation's time is limited. That of others is not
	// measured.
	Counts(org string) bool
	// Charge counts time that was used. Its error says that nothing is left: the script
	// ends with it.
	Charge(ctx context.Context, org string, used time.Duration) error
}

// cpuMeter measures the processor time of one run: what the script itself computes, with
// our functions that only compute, and without what it waits for. It is used by the
// goroutine that runs the script.
type cpuMeter struct {
	cputime.Meter
	cpu  CPU
	org  string
	ctx  context.Context         // of the run; Tick gets none
	stop context.CancelCauseFunc // ends the run
	used time.Duration
	due  time.Duration // of used, not charged yet
}

// chargeStep is how much a run uses before it is charged, so that short scripts and those
// that often wait are charged once. It is what all runs of a node can use too much, each.
const chargeStep = time.Millisecond

// meterOf returns what counts the processor time of a run if its organisation's is limited;
// nil if it is not. The error says that nothing is left. stop ends the run.
func (r *Runner) meterOf(ctx context.Context, stop context.CancelCauseFunc) (*cpuMeter, error) {
	org := principal.Of(ctx).ActingOrg()
	if r.options.CPU == nil || org == "" || !r.options.CPU.Counts(org) {
		return nil, nil
	}
	if err := r.options.CPU.Charge(ctx, org, 0); err != nil {
		return nil, err
	}
	return &cpuMeter{cpu: r.options.CPU, org: org, ctx: ctx, stop: stop}, nil
}

// measure counts the processor time of run.
func (m *cpuMeter) measure(run func() (ended, error)) (ended, error) {
	if m == nil {
		return run()
	}
	m.Start()
	defer func() {
		m.count(m.Stop())
		_ = m.cpu.Charge(m.ctx, m.org, m.due) // what a script used at its end is no reason to refuse its result
	}()
	return run()
}

// count adds what was used since the last time, and ends the run if nothing is left.
func (m *cpuMeter) count(used time.Duration) {
	m.used += used
	if m.due += used; m.due < chargeStep {
		return
	}
	due := m.due
	m.due = 0
	if err := m.cpu.Charge(m.ctx, m.org, due); err != nil {
		m.stop(err)
	}
}

// Tick counts while the script computes.
func (m *cpuMeter) Tick() { m.count(m.Lap()) }

// Pause counts before the script waits. Meanwhile it holds no thread.
func (m *cpuMeter) Pause() { m.count(m.Stop()) }

// Resume goes on after Pause.
func (m *cpuMeter) Resume() { m.Start() }

// total returns what the run has used, and adds it to the run's span.
func (m *cpuMeter) total(span trace.Span) time.Duration {
	if m == nil {
		return 0
	}
	span.SetAttributes(attribute.Float64("script.cpu_seconds", m.used.Seconds()))
	return m.used
}

// reserve is the run's share of the memory of all runs, for which it waits without a
// thread.
func (m *cpuMeter) reserve(share *memory.Share) meteredShare { return meteredShare{share, m} }

type meteredShare struct {
	*memory.Share
	meter *cpuMeter
}

// Take pauses the meter while it may wait.
func (s meteredShare) Take(ctx context.Context, n int64, wait bool) error {
	if wait {
		s.meter.Pause()
		defer s.meter.Resume()
	}
	return s.Share.Take(ctx, n, wait)
}

// How long a run waits for memory that other runs hold. Its own time does not pass
// meanwhile.
const (
	memoryWait     = 2 * time.Minute
	longMemoryWait = 10 * time.Minute // of runs without a time limit
)

// memoryOf opens the run's share of the memory of all runs. Principals take turns when
// there is none left. A run inside another run counts as part of it.
func (r *Runner) memoryOf(ctx context.Context, limits Limits) (*memory.Share, context.Context) {
	wait := memoryWait
	if limits.Time < 0 {
		wait = longMemoryWait
	}
	return r.options.Memory.Open(ctx, principal.Of(ctx).ID, wait)
}

// reserve is the run's share for the JavaScript engine; nil if there is none.
func (l runLimits) reserve() js.Reserve {
	if l.share == nil {
		return nil
	}
	return l.share
}
