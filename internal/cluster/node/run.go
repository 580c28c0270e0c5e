package node

import (
	"context"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Run starts sending heartbeats, watching the other nodes and taking over the work of
// dead ones. It returns at once.
func (n *Node) Run(ctx context.Context, work ...Work) {
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.mu.Lock()
	n.owned = work
	n.mu.Unlock()
	changes := make(chan struct{}, 1)
	n.work.Go(func() { n.listen(ctx, changes) })
	n.work.Go(func() { n.loop(ctx, changes) })
}

// listen receives notifications that nodes joined or left.
func (n *Node) listen(ctx context.Context, changes chan<- struct{}) {
	_ = n.db.Listen(ctx, topic, func(notification db.Notification) {
		if notification.Missed { // the connection may have been lost, and the claim with it
			n.mu.Lock()
			n.disconnected, n.since = true, time.Now()
			n.mu.Unlock()
		}
		select {
		case changes <- struct{}{}:
		default: // a check is due already
		}
	})
}

// How often a node sends a heartbeat, and checks the others without a notification.
const (
	beatInterval = time.Second
	pollInterval = 5 * time.Second
)

// frozenAfter is the time without a heartbeat after which a node that holds its claim
// counts as dead: it is frozen, or hangs. Tests use a longer time.
var frozenAfter = 10 * time.Second

func (n *Node) loop(ctx context.Context, changes <-chan struct{}) {
	every := pollInterval
	if n.options.Silence > 0 {
		every = beatInterval
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := n.step(ctx); err != nil && ctx.Err() == nil {
			n.options.Log.WarnContext(ctx, "nodes not checked", "error", err)
		}
		select {
		case <-tick.C:
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// step sends a heartbeat and checks the other nodes.
func (n *Node) step(ctx context.Context) error {
	if n.options.Silence > 0 {
		if err := n.keepAlive(ctx); err != nil {
			return err
		}
	}
	if err := n.removeDead(ctx); err != nil {
		return err
	}
	return n.Sweep(ctx)
}

// keepAlive sends a heartbeat, and registers the node again if it was taken for dead.
func (n *Node) keepAlive(ctx context.Context) error {
	n.mu.Lock()
	cutOff := n.disconnected
	n.mu.Unlock()
	known, err := n.heartbeat(ctx)
	if err != nil {
		return err
	}
	if cutOff || !known {
		n.mu.Lock()
		release := n.release
		n.mu.Unlock()
		_ = release() // it is lost, or no longer needed
		if err := n.claim(ctx); err != nil {
			return err
		}
		n.mu.Lock()
		n.disconnected = false
		n.mu.Unlock()
		if known, err = n.heartbeat(ctx); err != nil {
			return err
		}
	}
	if known {
		return nil
	}
	n.options.Log.WarnContext(ctx, "this node was disconnected and taken for dead; it continues with the work it still owns")
	if err := n.register(ctx, false); err != nil {
		return err
	}
	return n.each(func(e Work) error { return e.Recheck(ctx) })
}

func (n *Node) each(do func(Work) error) error {
	n.mu.Lock()
	work := n.owned
	n.mu.Unlock()
	var failed []error
	for _, e := range work {
		failed = append(failed, do(e))
	}
	return errors.Join(failed...)
}

// Sweep takes over the work of nodes that are gone. It reads the owners before the
// nodes: a node registers before it has work.
func (n *Node) Sweep(ctx context.Context) error {
	return n.each(func(e Work) error {
		owners, err := e.Owners(ctx)
		if err != nil || len(owners) == 0 {
			return err
		}
		gone, err := n.missing(ctx, owners)
		if err != nil || len(gone) == 0 {
			return err
		}
		return e.TakeOver(ctx, gone)
	})
}
