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

type approvedKey struct{}

// WithApproved returns ctx for the call of a tool that was approved.
func WithApproved(ctx context.Context, ref Ref) context.Context {
	return context.WithValue(ctx, approvedKey{}, ref)
}

// Approved returns the tool whose call was approved; ok is false if there is none.
func Approved(ctx context.Context) (ref Ref, ok bool) {
	ref, ok = ctx.Value(approvedKey{}).(Ref)
	return ref, ok
}

// StatusPending is the status in the result of a call that waits for approval.
const StatusPending = "pending_approval"

// PendingApproval returns the approval that the call, or the script that it ran, waits for.
func (v View) PendingApproval() (id string, waiting bool) {
	var answer struct {
		Status   string
		Approval struct {
			ID string `json:"approval_id"`
		}
	}
	waiting = !v.IsError && len(v.Structured) > 0 && json.Unmarshal(v.Structured, &answer) == nil && answer.Status == StatusPending
	return answer.Approval.ID, waiting
}

type planKey struct{}

// ForPlan returns ctx for reads that show people what would happen. They are ours, not the
// user's: they do not count as calls of the tool, and never ask for approval.
func ForPlan(ctx context.Context) context.Context { return context.WithValue(ctx, planKey{}, true) }

// IsForPlan reports whether ctx is for such reads.
func IsForPlan(ctx context.Context) bool { return ctx.Value(planKey{}) != nil }

// Task is work that continues after the call that started it has returned. Clients that
// support tasks refer to it by its id.
type Task struct {
	ID        string
	Space     string // the namespace of the upstream whose task it is; "" for our own
	State     TaskState
	Message   string // progress or outcome; may be empty
	Created   time.Time
	Updated   time.Time                  // the last change
	TTL       time.Duration              // how long it is stored after its creation; 0: not known yet
	Result    Result                     // of a completed task: the result of the call
	Err       error                      // of a failed task: why there is no result
	Questions map[string]json.RawMessage // of a task that waits for input: MCP requests by key
	Poll      time.Duration              // how often to look at it; 0: no recommendation
}

// TaskRequest asks for a task in place of a call's result, where the tool supports that.
type TaskRequest struct {
	TTL time.Duration // how long the task should be stored after its creation; 0: not said
}

// TaskState is the state of a task in MCP.
type TaskState string

// The states. The last three are final.
const (
	TaskWorking       TaskState = "working"
	TaskInputRequired TaskState = "input_required"
	TaskCompleted     TaskState = "completed" // also when the tool failed: its result says so
	TaskFailed        TaskState = "failed"
	TaskCancelled     TaskState = "cancelled"
)

// Final reports whether the state does not change any more.
func (s TaskState) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}
