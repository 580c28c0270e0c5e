package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Info describes a node.
type Info struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	State    string        `json:"state"` // up, draining, silent
	Address  string        `json:"address,omitempty"`
	Version  string        `json:"version"`
	Started  time.Time     `json:"started"`
	LastSeen time.Time     `json:"heard"`   // last heartbeat, by the database's clock
	Skew     time.Duration `json:"skew_ns"` // how far its own clock is ahead of the database's
	Watching bool          `json:"-"`
	// Load is the load that the node last reported.
	Load json.RawMessage `json:"load,omitempty"`

	slot int
}

// Joined is published by a node that registers, Gone by the node that removes a dead one.
type (
	Joined struct {
		Node string `json:"id"`
		Name string `json:"name"`
	}
	Gone struct {
		Node     string `json:"id"`
		Name     string `json:"name"`
		SilentMS int64  `json:"silent_ms"`
	}
)

func (Joined) EventType() string  { return "node.joined" }
func (j Joined) EventKey() string { return j.Node }
func (Gone) EventType() string    { return "node.gone" }
func (g Gone) EventKey() string   { return g.Node }

const columns = `id, name, slot, state, address, version, started, beat, skew, watches, load`

func scan(row db.Scanner) (i Info, err error) {
	var started, beat, skew int64
	var load string
	err = row.Scan(&i.ID, &i.Name, &i.slot, &i.State, &i.Address, &i.Version, &started, &beat, &skew, &i.Watching, &load)
	i.Started, i.LastSeen, i.Skew = time.UnixMicro(started).UTC(), time.UnixMicro(beat).UTC(), time.Duration(skew)*time.Microsecond
	if json.Valid([]byte(load)) {
		i.Load = json.RawMessage(load)
	}
	return i, err
}

// readAll reads all rows and the database's clock.
func readAll(ctx context.Context, d *db.DB) (all []Info, now time.Time, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		if now, err = tx.Now(ctx); err != nil {
			return err
		}
		all, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM nodes ORDER BY started, id`)
		return err
	})
	return all, now, err
}

// List returns all nodes, the oldest first. The caller need not be a node.
func List(ctx context.Context, d *db.DB) ([]Info, error) {
	if err := d.Migrate(ctx, "node", migrations); err != nil {
		return nil, err
	}
	all, now, err := readAll(ctx, d)
	for i := range all {
		if all[i].frozen(now) {
			all[i].State = "silent"
		}
	}
	return all, err
}

// frozen reports whether a node that has sent heartbeats before stopped for long.
func (i Info) frozen(now time.Time) bool {
	return i.LastSeen.After(i.Started) && now.Sub(i.LastSeen) > frozenAfter
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

// unregister removes the node's own row.
func (n *Node) unregister(ctx context.Context) error {
	return n.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, n.ID); err != nil {
			return err
		}
		return tx.Notify(topic, "left")
	})
}
