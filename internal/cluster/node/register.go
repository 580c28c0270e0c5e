package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// register inserts the node's row. Names are unique: if the name is taken, the node
// gets a suffix, or with only, a conflict.
func (n *Node) register(ctx context.Context, only bool) error {
	var name string
	load := n.load()
	err := n.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		n.mu.Lock()
		slot := n.slot
		n.mu.Unlock()
		// A row with this name and this claim is left of this node's last run.
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE name = $1 AND slot = $2 AND id <> $3`, n.options.Name, slot, n.ID); err != nil {
			return err
		}
		taken, err := db.All(ctx, tx, func(row db.Scanner) (name string, err error) { return name, row.Scan(&name) },
			`SELECT name FROM nodes WHERE id <> $1`, n.ID)
		if err != nil {
			return err
		}
		name = n.options.Name
		if only && slices.Contains(taken, name) {
			return fault.New(fault.Conflict, "a node called %s is running on this database", name).
				WithHint("give this one another name with --node, or stop the other; luanette nodes shows where it is")
		}
		for i := 2; slices.Contains(taken, name); i++ {
			name = fmt.Sprintf("%s-%d", n.options.Name, i)
		}
		_, err = tx.Exec(ctx, `INSERT INTO nodes (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10)`,
			n.ID, name, slot, n.state(), n.address.Load(), n.options.Version, now.UnixMicro(), time.Since(now).Microseconds(), n.watching(), load)
		if err != nil {
			return err
		}
		return tx.Notify(topic, "joined")
	})
	if fault.CodeOf(err) == fault.Conflict {
		return err
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "register the node")
	}
	n.mu.Lock()
	n.name = name
	n.mu.Unlock()
	if name != n.options.Name {
		n.options.Log.WarnContext(ctx, "another node has this node's name", "name", n.options.Name, "called", name)
	}
	n.options.Events.Publish(Joined{Node: n.ID, Name: name})
	return nil
}

func (n *Node) load() string {
	if n.options.Load == nil {
		return ""
	}
	return string(n.options.Load())
}

func (n *Node) state() string {
	if n.draining.Load() {
		return "draining"
	}
	return "up"
}

// maxSkew is the clock skew above which a warning is logged. Only displayed times and
// schedules depend on the machine's clock.
const maxSkew = 2 * time.Second

// heartbeat stores that the node is alive, and reports whether it still has a row.
func (n *Node) heartbeat(ctx context.Context) (known bool, err error) {
	var now time.Time
	var skew time.Duration
	load := n.load()
	err = n.db.Write(ctx, func(tx *db.Tx) (err error) {
		if now, err = tx.Now(ctx); err != nil {
			return err
		}
		skew = time.Since(now)
		n.mu.Lock()
		slot := n.slot
		n.mu.Unlock()
		result, err := tx.Exec(ctx, `UPDATE nodes SET beat = $2, skew = $3, slot = $4, state = $5, address = $6, watches = $7, load = $8 WHERE id = $1`,
			n.ID, now.UnixMicro(), skew.Microseconds(), slot, n.state(), n.address.Load(), n.watching(), load)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		known = rows > 0
		return err
	})
	if err != nil {
		return false, err
	}
	if skew.Abs() > maxSkew {
		n.options.Log.WarnContext(ctx, "the clock of this machine differs from the database's", "by", skew.Round(time.Millisecond))
	}
	n.noteHeartbeat(now)
	return known, nil
}

// noteHeartbeat notes the time of the heartbeat. After a long pause, such as a suspend
// of all machines, the node must wait for the others' heartbeats as after a start.
func (n *Node) noteHeartbeat(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.lastBeat.IsZero() && now.Sub(n.lastBeat) > n.options.Silence+beatInterval {
		n.since = time.Now()
	}
	n.lastBeat = now
}

// unregister removes the node's own row.
func (n *Node) unregister(ctx context.Context) error {
	return n.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, n.ID); err != nil {
			return err
		}
		return tx.Notify(topic, "left")
	})
}
