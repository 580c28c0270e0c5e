// Package quota limits how many tool calls a principal may run at once and make a day, and
// how many an organisation may make a day on all nodes.
package quota

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

const (
	maxWaiting    = 1000   // calls of one principal that may wait
	maxPrincipals = 10_000 // more than these are forgotten while they have no calls
)

// Quota holds the running calls of each principal.
type Quota struct {
	spend func(ctx context.Context, who principal.Principal) error
	orgs  *Orgs // nil: organisations have no quotas

	mu    sync.Mutex
	turns map[string]*queue.FairSemaphore // by principal
}

// New makes a quota. spend counts a call against the principal's daily budget; its
// error refuses the call. orgs counts it for the principal's organisation; it may be nil.
func New(spend func(ctx context.Context, who principal.Principal) error, orgs *Orgs) *Quota {
	return &Quota{spend: spend, orgs: orgs, turns: map[string]*queue.FairSemaphore{}}
}

// LimitCalls makes a call wait until its principal has fewer calls running than its
// limit, and counts it against the daily budget. Our own tools are not counted: a call
// of one that waits for another tool would wait for itself.
func (q *Quota) LimitCalls() tool.Step {
	return tool.Step{Name: "quota", Before: q.acquire, After: q.release}
}

func (q *Quota) acquire(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	who := principal.Of(ctx)
	if i.Call.Ref.Space == "" {
		return ctx, nil
	}
	if who.Limits == (principal.Limits{}) {
		return ctx, q.spendOrg(ctx, who)
	}
	turns := q.turnsOf(who)
	if err := turns.Acquire(ctx, ""); err != nil {
		if ctx.Err() == nil {
			err = principal.Exceeded{What: "tool calls", Of: who.Title(), Most: who.Limits.Concurrent, After: time.Second}.Fault()
		}
		return ctx, fault.Wrap(fault.CodeOf(err), err, "call %s", i.Call.Ref)
	}
	err := q.spendOrg(ctx, who)
	if err == nil {
		err = q.spend(ctx, who)
	}
	if err != nil {
		turns.Release()
		return ctx, err
	}
	i.Release = turns.Release
	return ctx, nil
}

func (q *Quota) spendOrg(ctx context.Context, who principal.Principal) error {
	org := who.ActingOrg()
	if q.orgs == nil || org == "" {
		return nil
	}
	return q.orgs.Spend(ctx, org)
}

// release ends a call. One that waits for somebody's login has not used the upstream, and
// does not count for the organisation.
func (q *Quota) release(ctx context.Context, i *tool.Invocation) {
	if i.Release != nil {
		i.Release()
	}
	if i.Err == nil || q.orgs == nil || i.Call.Ref.Space == "" || fault.CodeOf(i.Err) != fault.NeedsAuth {
		return
	}
	if unsent := (tool.Unsent{}); errors.As(i.Err, &unsent) {
		q.orgs.Unspend(principal.Of(ctx).ActingOrg())
	}
}

// Waiting is how many calls of a principal wait.
func (q *Quota) Waiting(who principal.Principal) int { return q.turnsOf(who).Waiting() }

// turnsOf are the turns that the calls of a principal take.
func (q *Quota) turnsOf(who principal.Principal) *queue.FairSemaphore {
	q.mu.Lock()
	defer q.mu.Unlock()
	turns := q.turns[who.ID]
	if turns == nil {
		if len(q.turns) >= maxPrincipals {
			for id, t := range q.turns {
				if t.Idle() {
					delete(q.turns, id)
				}
			}
		}
		turns = queue.NewFairSemaphore(who.Limits.Concurrent, maxWaiting)
		q.turns[who.ID] = turns
	}
	return turns
}
