package lua

import "context"

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
