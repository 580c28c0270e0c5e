package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

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
		result, err := tx.Exec(ctx, `DELETE FROM nodes WHERE id = $1 AND beat = $2`, i.ID, i.LastSeen.UnixMicro())
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if deleted = rows > 0; err != nil || !deleted {
			return err
		}
		return tx.Notify(topic, "gone")
	})
	if err == nil && deleted {
		n.options.Log.InfoContext(ctx, "node is gone", "name", i.Name, "silent", silent.Round(time.Millisecond))
		n.options.Events.Publish(Gone{Node: i.ID, Name: i.Name, SilentMS: silent.Milliseconds()})
	}
	return err
}

// missing returns those of ids that are not nodes.
func (n *Node) missing(ctx context.Context, ids []string) (gone []string, err error) {
	err = n.db.Read(ctx, func(tx *db.Tx) error {
		there, err := db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) }, `SELECT id FROM nodes`)
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
