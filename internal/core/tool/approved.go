package tool

import (
	"context"
	"encoding/json"
)

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
