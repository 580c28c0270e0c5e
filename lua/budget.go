package lua

import (
	"context"
	"math"
	"time"
)

// Budget limits what a state may use. Zero fields do not limit.
type Budget struct {
	// Steps bounds backward jumps, calls, and the units of work of library
	// functions, counted from the SetBudget that set it.
	Steps int64
	// Memory bounds the bytes the state may hold. Garbage does not count:
	// before the limit is enforced what is reachable is measured.
	Memory int64
	// Reserve is where the memory is taken from that several states share; nil
	// takes it from nowhere. The host gives back what a state holds at its end.
	Reserve Reserve
	// Deadline is when the state must stop.
	Deadline time.Time
	// Tick is called between slices of work, well under a millisecond long, on
	// the goroutine that runs the state: the host may measure it, and cancel
	// its context. May be nil.
	Tick func()
}

// Usage tells what a state has used.
type Usage struct {
	// Steps since the last SetBudget.
	Steps int64
	// Memory is the estimate of bytes held; it includes garbage produced
	// since the last measurement.
	Memory int64
}

// fuelSlice is how many steps pass between two looks at the clock and the
// context: well under a millisecond of work.
const fuelSlice = 10000

// account is the part of a state that counts. The loop of the machine takes
// steps from fuel and asks refuel for more when it has run out.
type account struct {
	fuel    int64
	granted int64 // of the current slice
	spent   int64 // steps of slices that are over
	budget  Budget
	ctx     context.Context // of the call that runs
	// done is ctx's channel, nil when it can never be cancelled.
	done <-chan struct{}

	memory     int64 // bytes charged since the last measurement, plus what it found
	held       int64 // of them, what parsers hold outside of the live graph
	memoryNext int64 // measure when memory passes this
	reserved   int64 // taken from budget.Reserve
	measureAt  int64 // with a reserve: measure before taking more than this
}

// SetBudget replaces the budget and starts counting steps anew.
func (s *State) SetBudget(b Budget) {
	s.account.budget = b
	s.account.reserved, s.account.measureAt = 0, s.account.memory+unmeasured
	s.account.spent, s.account.granted, s.account.fuel = 0, 0, 0
	s.account.memoryNext = s.nextMeasure()
}

// Usage returns what the state has used so far.
func (s *State) Usage() Usage {
	a := &s.account
	return Usage{Steps: a.spent + a.granted - max(a.fuel, 0), Memory: a.memory}
}

// step charges n units of work.
func (s *State) step(n int) error {
	s.account.fuel -= int64(n)
	if s.account.fuel < 0 {
		return s.refuel()
	}
	return nil
}

// refuel looks at every limit and, when none is reached, grants a new slice.
func (s *State) refuel() error {
	a := &s.account
	if a.granted > 0 && a.budget.Tick != nil {
		a.budget.Tick()
	}
	a.spent += a.granted - a.fuel
	a.granted = fuelSlice
	if limit := a.budget.Steps; limit > 0 {
		if a.spent > limit {
			a.granted, a.fuel = 0, 0
			return &BudgetError{Limit: LimitSteps, Used: a.spent, Allowed: limit}
		}
		a.granted = min(fuelSlice, limit-a.spent)
	}
	a.fuel = a.granted
	if err := s.checkTime(); err != nil {
		return err
	}
	if len(s.gc.pending) > 0 {
		return s.finalize()
	}
	return nil
}

func (s *State) checkTime() error {
	a := &s.account
	if a.done != nil {
		select {
		case <-a.done:
			return &BudgetError{Limit: LimitContext, Cause: context.Cause(a.ctx)}
		default:
		}
	}
	if !a.budget.Deadline.IsZero() && time.Now().After(a.budget.Deadline) {
		return &BudgetError{Limit: LimitDeadline}
	}
	return nil
}

// alloc charges bytes about to be allocated.
func (s *State) alloc(bytes int) error {
	s.account.memory += int64(bytes)
	if s.account.memory > s.account.memoryNext {
		return s.measure(int64(bytes))
	}
	return nil
}

// hold charges bytes of something that is not part of the live graph, until
// release gives them back.
func (s *State) hold(bytes int) error {
	s.account.held += int64(bytes)
	return s.alloc(bytes)
}

// release gives back what was held since held stood at mark.
func (s *State) release(mark int64) {
	s.account.memory -= s.account.held - mark
	s.account.held = mark
}

// owe charges bytes that were allocated where no error can be raised. The
// machine raises it at its next call or jump backwards.
func (s *State) owe(bytes int) {
	a := &s.account
	a.memory += int64(bytes)
	if a.memory > a.memoryNext {
		a.granted -= a.fuel + 1
		a.fuel = -1
	}
}

// nextMeasure returns the amount of memory at which reachable objects are
// measured next: never, unless there is a limit, or weak tables or finalizers
// depend on it.
func (s *State) nextMeasure() int64 {
	next := int64(math.MaxInt64)
	if s.collects() {
		next = max(2*s.account.memory, minCollect)
	}
	if limit := s.account.budget.Memory; limit > 0 {
		next = min(next, limit)
	}
	return s.account.withinReserve(next)
}

// measure re-measures what is reachable and raises an error when that is over
// the limit. The bytes asked for are already on the account.
func (s *State) measure(asked int64) error {
	if s.takeAhead() {
		return nil
	}
	a := &s.account
	live := s.collect() + a.held
	a.memory = live + asked
	if len(s.gc.pending) > 0 { // run finalizers at the next safe point
		a.granted -= max(a.fuel, 0)
		a.fuel = min(a.fuel, 0)
	}
	limit := a.budget.Memory
	if limit > 0 && a.memory > limit {
		used := a.memory
		a.memory = live
		a.memoryNext = limit
		return &BudgetError{Limit: LimitMemory, Used: used, Allowed: limit}
	}
	if err := s.settle(); err != nil {
		a.memory = live
		return err
	}
	a.memoryNext = s.nextMeasure()
	if limit > 0 {
		// Close under the limit a walk would run for every small allocation.
		// Letting a sixteenth pass unmeasured bounds what walks cost.
		a.memoryNext = a.withinReserve(max(a.memoryNext, a.memory+limit/16))
	}
	return nil
}

// Reserve is memory that several states share. A state takes from it before it
// holds more, and gives back what it does not need.
type Reserve interface {
	// Take asks for n more bytes. If there are none it returns an error at
	// once, unless it may wait.
	Take(ctx context.Context, n int64, wait bool) error
	// Give returns n bytes.
	Give(n int64)
}

const (
	// reserveStep is the least that a state takes from its reserve at once.
	reserveStep = 128 << 10
	// unmeasured is how many bytes a state may take beyond twice what was
	// reachable, before it measures again: what is garbage goes back.
	unmeasured = 16 << 20
)

// takeAhead takes what the state is charged for, without waiting and without
// measuring. It reports whether that was enough.
func (s *State) takeAhead() bool {
	a := &s.account
	if a.budget.Reserve == nil || a.memory > a.measureAt || a.budget.Memory > 0 && a.memory > a.budget.Memory {
		return false
	}
	if a.memory > a.reserved {
		more := a.memory - a.reserved + a.ahead()
		if a.budget.Reserve.Take(a.ctx, more, false) != nil {
			return false
		}
		a.reserved += more
	}
	a.memoryNext = s.nextMeasure()
	return true
}

// withinReserve lowers an amount to what was taken from the reserve, if there
// is one.
func (a *account) withinReserve(amount int64) int64 {
	if a.budget.Reserve == nil {
		return amount
	}
	return min(amount, a.reserved)
}

// ahead is how much is taken at once beyond what is needed.
func (a *account) ahead() int64 { return max(a.memory/8, reserveStep) }

// settle makes the state hold as much of the reserve as it was measured to
// need: it gives back the rest, or waits for more.
func (s *State) settle() error {
	a := &s.account
	if a.budget.Reserve == nil {
		return nil
	}
	a.measureAt = 2*a.memory + unmeasured
	want := a.memory + a.ahead()
	if want < a.reserved {
		a.budget.Reserve.Give(a.reserved - want)
		a.reserved = want
		return nil
	}
	if a.memory <= a.reserved {
		return nil
	}
	if err := a.budget.Reserve.Take(a.ctx, want-a.reserved, true); err != nil {
		return &BudgetError{Limit: LimitReserve, Used: a.memory, Cause: err}
	}
	a.reserved = want
	return nil
}
