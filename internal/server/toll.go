package server

import (
	"context"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// tolls bound what each who asks may have running.
type tolls struct {
	mu     sync.Mutex
	places map[string]*queue.FairSemaphore // by who asks
}

const (
	tollQueue = 1000   // calls of one that may wait
	tollsKept = 10_000 // of those who asked lately
)

// toll lets a call go on once its principal has room for it and something left of
// the day's budget.
func (srv *Server) toll(ctx context.Context, ref tool.Ref) (over func(), err error) {
	who := principal.Of(ctx)
	if who.Limits == (principal.Limits{}) {
		return func() {}, nil
	}
	places := srv.tolls.of(who)
	if err := places.Acquire(ctx, ""); err != nil {
		if ctx.Err() == nil {
			err = principal.Exceeded{What: "tool calls", Of: who.Title(), Most: who.Limits.Concurrent, After: time.Second}.Fault()
		}
		return nil, fault.Wrap(fault.CodeOf(err), err, "call %s", ref)
	}
	if err := srv.ring.Spend(ctx, who); err != nil {
		places.Release()
		return nil, err
	}
	return places.Release, nil
}

// of is where the calls of somebody wait for each other.
func (t *tolls) of(who principal.Principal) *queue.FairSemaphore {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil {
		t.places = map[string]*queue.FairSemaphore{}
	}
	places := t.places[who.ID]
	if places == nil {
		if len(t.places) >= tollsKept {
			for id, p := range t.places {
				if p.Idle() {
					delete(t.places, id)
				}
			}
		}
		places = queue.NewFairSemaphore(who.Limits.Concurrent, tollQueue)
		t.places[who.ID] = places
	}
	return places
}
