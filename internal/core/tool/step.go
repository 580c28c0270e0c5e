package tool

import (
	"context"
	"encoding/json"
	"time"
)

// Step is one concern of every call: policy, audit, quota and so on. A call passes the
// Before functions of a list of steps in order, then the tool runs, then the After
// functions run in reverse order. Steps run one after the other instead of around each
// other, so that a call's stack stays short however many there are.
type Step struct {
	Name string
	// ChecksOnly means that Before changes nothing but the invocation. Previews run these
	// steps to learn whether a call would be refused.
	ChecksOnly bool
	// Before may change the invocation and returns the context for what follows. Its
	// error refuses the call: neither later steps nor the tool see it. May be nil.
	Before func(ctx context.Context, i *Invocation) (context.Context, error)
	// After gets the outcome of the call, and may change it. It runs for every step
	// whose Before succeeded, also when a later step refused the call. May be nil.
	After func(ctx context.Context, i *Invocation)
}

// Invocation is one call on its way through the steps. A step must not retain it after
// the call has ended, because the memory is reused.
type Invocation struct {
	Info *Info // the tool's definition; only Ref is set while its owner has not listed it
	Call Call  // as the tool gets it
	// Args are the caller's arguments, even if steps have changed those in Call.
	Args json.RawMessage
	// Relayed calls go to the upstream as the client wrote them, as Params. Steps that
	// change arguments change Params too.
	Relayed bool
	Params  json.RawMessage

	Began time.Time
	Took  time.Duration // set before the first After

	// Denied means that the call was refused because the caller may not make it, and
	// Rule names the rule that decided, if one did. Both are for the audit log.
	Denied bool
	Rule   string

	// Answered means that a step has set Result in place of the tool's; the tool is
	// not called.
	Answered bool
	Result   Result
	Err      error

	// Asked means that the call needs approval: Result says what it waits for, or is that
	// of the call that was made after the decision, through all steps. Steps that count
	// calls or learn from results leave it alone.
	Asked bool

	// Release returns the slot that the call holds within its principal's quota; nil:
	// it holds none.
	Release func()

	// State belongs to the runner of the steps.
	State any
}

// Deny refuses the call by a rule; it returns err.
func (i *Invocation) Deny(rule string, err error) error {
	i.Denied, i.Rule = true, rule
	return err
}

// Unsent is the error of a call that its upstream never got.
type Unsent struct{ Err error }

func (e Unsent) Error() string { return e.Err.Error() }

func (e Unsent) Unwrap() error { return e.Err }
