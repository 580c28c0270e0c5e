package db

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
)

// Outages tells whoever asked for patience whether it was needed.
type Outages struct{ met atomic.Bool }

// Any tells whether the database was away when it was asked for something.
func (o *Outages) Any() bool { return o.met.Load() }

// WaitForDatabase is for work that somebody was promised: Reads and Writes under the
// context it returns wait for a database that is away for as long as that lasts,
// where others give up after a while.
func WaitForDatabase(ctx context.Context) (context.Context, *Outages) {
	o := &Outages{}
	return context.WithValue(ctx, outagesKey{}, o), o
}

type outagesKey struct{}

// reconnectDelay is how often a server that is away is asked whether it is back.
var reconnectDelay = backoff.Policy{First: 10 * time.Millisecond, Max: 500 * time.Millisecond, Jitter: 0.5}

// whileUnreachable does something again as long as the server is away, up to a point.
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

// once does it once.
func once(_ context.Context, do func() error) error { return do() }

// whileUnreachable does it: a file is never away.
func (*sqliteFile) whileUnreachable(ctx context.Context, do func() error) error { return once(ctx, do) }
