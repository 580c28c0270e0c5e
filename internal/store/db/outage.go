package db

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
)

// Outages records whether the database was unreachable during a WaitForDatabase.
type Outages struct{ met atomic.Bool }

// Any reports whether the database was unreachable.
func (o *Outages) Any() bool { return o.met.Load() }

// WaitForDatabase is for work that must not be lost: Reads and Writes under the
// context it returns wait for an unreachable database until ctx ends, where others
// give up after Options.OutageTimeout.
func WaitForDatabase(ctx context.Context) (context.Context, *Outages) {
	o := &Outages{}
	return context.WithValue(ctx, outagesKey{}, o), o
}

type outagesKey struct{}

// reconnectDelay is the delay between attempts to reach a server.
var reconnectDelay = backoff.Policy{First: 10 * time.Millisecond, Max: 500 * time.Millisecond, Jitter: 0.5}

// whileUnreachable repeats do while the server is unreachable, up to the timeout.
func (p *postgres) whileUnreachable(ctx context.Context, do func() error) error {
	promised, _ := ctx.Value(outagesKey{}).(*Outages)
	deadline := time.Now().Add(p.outageTimeout)
	for failures := 1; ; failures++ {
		err := do()
		if !isLost(err) {
			return err
		}
		if promised != nil {
			promised.met.Store(true)
		} else if time.Now().After(deadline) {
			return err
		}
		if sleep(ctx, reconnectDelay.Delay(failures)) != nil {
			return err
		}
	}
}

// once is whileUnreachable without a retry.
func once(_ context.Context, do func() error) error { return do() }

// whileUnreachable runs do: a file is always reachable.
func (*sqliteFile) whileUnreachable(ctx context.Context, do func() error) error { return once(ctx, do) }
