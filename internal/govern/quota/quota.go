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
	limited := who.Limited()
	if len(limited) == 0 {
		return ctx, q.spendOrg(ctx, who)
	}
	release, err := q.takeTurns(ctx, limited)
	if err != nil {
		return ctx, fault.Wrap(fault.CodeOf(err), err, "call %s", i.Call.Ref)
	}
	if err = q.spendOrg(ctx, who); err == nil {
		err = q.spend(ctx, who)
	}
	if err != nil {
		release()
		return ctx, err
	}
	i.Release = release
	return ctx, nil
}

// takeTurns waits until all that is limited has fewer calls running than its limit.
func (q *Quota) takeTurns(ctx context.Context, limited []principal.Limited) (release func(), err error) {
	var taken []*queue.FairSemaphore
	release = func() {
		for _, turns := range taken {
			turns.Release()
		}
	}
	for _, l := range limited {
		turns := q.turnsOf(l)
		if err := turns.Acquire(ctx, ""); err != nil {
			release()
			if ctx.Err() == nil {
				err = principal.Exceeded{What: "tool calls", Of: l.Title, Most: l.Concurrent, After: time.Second}.Fault()
			}
			return nil, err
		}
		taken = append(taken, turns)
	}
	return release, nil
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
func (q *Quota) Waiting(who principal.Principal) (count int) {
	for _, l := range who.Limited() {
		count += q.turnsOf(l).Waiting()
	}
	return count
}

// turnsOf are the turns that calls take.
func (q *Quota) turnsOf(who principal.Limited) *queue.FairSemaphore {
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
		turns = queue.NewFairSemaphore(who.Concurrent, maxWaiting)
		q.turns[who.ID] = turns
	}
	return turns
}
