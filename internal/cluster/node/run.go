package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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

// removeNamesake removes the row of a dead node that had this one's name.
func (n *Node) removeNamesake(ctx context.Context) error {
	all, now, err := readAll(ctx, n.db)
	if err != nil {
		return err
	}
	holders := n.otherSlots(all, now)
	var failed []error
	for _, i := range all {
		switch {
		case i.Name != n.options.Name:
		case now.Sub(i.LastSeen) < n.options.Silence:
			failed = append(failed, n.deleteUnclaimed(ctx, i, now))
		default:
			failed = append(failed, n.removeIfDead(ctx, i, now, holders))
		}
	}
	return errors.Join(failed...)
}

// removeDead finds dead nodes and removes their rows.
func (n *Node) removeDead(ctx context.Context) error {
	all, now, err := readAll(ctx, n.db)
	if err != nil {
		return err
	}
	n.mu.Lock()
	mine, connected := n.slot, time.Since(n.since)
	n.mu.Unlock()
	holders := n.otherSlots(all, now)
	holders[mine] = true
	if n.options.Silence > 0 && connected < n.options.Silence+beatInterval {
		return nil // the database was unreachable, perhaps for the others too
	}
	var failed []error
	for _, i := range all {
		if i.ID != n.ID && now.Sub(i.LastSeen) >= n.options.Silence {
			failed = append(failed, n.removeIfDead(ctx, i, now, holders))
		}
	}
	return errors.Join(failed...)
}

// removeIfDead removes the row of a silent node if it is dead: another node holds its
// claim, or none does, or it was silent for so long that the claim does not count.
func (n *Node) removeIfDead(ctx context.Context, i Info, now time.Time, holders map[int]bool) error {
	if holders[i.slot] || n.options.Silence > 0 && i.frozen(now) {
		return n.deleteRow(ctx, i, now)
	}
	return n.deleteUnclaimed(ctx, i, now)
}

// otherSlots returns the claims that other nodes are known to hold, and notes whether a
// client of one of them follows the events of all nodes.
func (n *Node) otherSlots(all []Info, now time.Time) map[int]bool {
	watched := false
	holders := map[int]bool{}
	for _, i := range all {
		if i.ID != n.ID && now.Sub(i.LastSeen) < n.options.Silence {
			holders[i.slot] = true
			watched = watched || i.Watching
		}
	}
	n.watched.Store(watched)
	return holders
}

// deleteUnclaimed removes the row of a silent node if its claim is free. A node that
// holds its claim is slow, but alive.
func (n *Node) deleteUnclaimed(ctx context.Context, i Info, now time.Time) error {
	release, err := n.db.Claim(ctx, claimName(i.slot))
	if fault.CodeOf(err) == fault.Conflict {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(n.deleteRow(ctx, i, now), release())
}

// deleteRow removes the row of a dead node, unless it sent a heartbeat meanwhile.
func (n *Node) deleteRow(ctx context.Context, i Info, now time.Time) error {
	silent, deleted := now.Sub(i.LastSeen), false
	err := n.db.Write(ctx, func(tx *db.Tx) error {
		rows, err := tx.Exec(ctx, `DELETE FROM nodes WHERE id = $1 AND beat = $2`, i.ID, i.LastSeen.UnixMicro())
		if deleted = rows > 0; err != nil || !deleted {
			return err
		}
		return tx.Notify(topic, "gone")
	})
	if err == nil && deleted {
		n.mu.Lock()
		earlier := i.Name == n.options.Name && i.LastSeen.Before(n.since)
		n.mu.Unlock()
		if earlier { // somebody has restarted it, and knows
			n.options.Log.DebugContext(ctx, "earlier run of this node removed", "name", i.Name, "ended", silent.Round(time.Millisecond))
		} else {
			n.options.Log.InfoContext(ctx, "node is gone", "name", i.Name, "silent", silent.Round(time.Millisecond))
		}
		n.options.Events.Publish(Gone{Node: i.ID, Name: i.Name, SilentMS: silent.Milliseconds()})
	}
	return err
}

// missing returns those of ids that are not nodes.
func (n *Node) missing(ctx context.Context, ids []string) (gone []string, err error) {
	err = n.db.Read(ctx, func(tx *db.Tx) error {
		there, err := db.All(ctx, tx, db.Column[string], `SELECT id FROM nodes`)
		gone = nil
		for _, id := range ids {
			if !slices.Contains(there, id) {
				gone = append(gone, id)
			}
		}
		return err
	})
	return gone, err
}
