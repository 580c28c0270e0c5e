// Package node tracks the processes that share a database. Each node has a row and
// holds a claim: a database lock that ends with the process (see db.Claim). A node is
// dead if its claim is free and, where a connection can break and be restored, its
// heartbeats have stopped for Options.Silence by the database's clock. A node that
// holds its claim but sends no heartbeat for long counts as dead too. The other nodes
// take over the work of a dead node.
//
// A node that was only disconnected or frozen may be taken for dead. When it
// reconnects, it finds its row removed and creates another; work that was taken over
// meanwhile is no longer its own. Stores of such work ensure this: every write checks
// which node owns the row.
package node

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options configure a node.
type Options struct {
	Name    string // for display; a second node with the same name gets a suffix
	Only    bool   // fail instead of adding a suffix to the name
	Version string
	// Silence is how long a node whose claim is free must send no heartbeat before it
	// is dead. Zero means that a free claim is enough.
	Silence time.Duration
	Events  *event.Bus   // may be nil
	Log     *slog.Logger // nil discards
}

// Work is work that belongs to nodes and can be taken over.
type Work interface {
	// Owners returns the ids of the nodes that have work.
	Owners(ctx context.Context) ([]string, error)
	// TakeOver makes this node the owner of the work of nodes that are gone.
	TakeOver(ctx context.Context, gone []string) error
	// Recheck stops the work of this node that other nodes have taken over.
	Recheck(ctx context.Context) error
}

// Node is this process among the nodes that share its database.
type Node struct {
	ID string

	db      *db.DB
	options Options

	address  atomic.Value // string
	draining atomic.Bool
	watching func() bool
	load     func() json.RawMessage
	watched  atomic.Bool // a client of another node follows the events of all nodes

	stop context.CancelFunc
	work sync.WaitGroup

	mu           sync.Mutex
	name         string
	slot         int
	release      func() error
	owned        []Work
	disconnected bool      // the connection was lost, so the claim may be lost too
	since        time.Time // last connected; silence of other nodes before then does not count
	lastBeat     time.Time // last heartbeat, by the database's clock
}

// topic is the notification channel for nodes that join or leave.
const topic = "nodes"

// Join registers this process as a node.
func Join(ctx context.Context, database *db.DB, o Options) (*Node, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = "node"
	}
	if err := database.Migrate(ctx, "node", Migrations); err != nil {
		return nil, err
	}
	n := &Node{ID: strings.ToLower(rand.Text()[:16]), db: database, options: o, name: o.Name, since: time.Now(), watching: func() bool { return false }, load: func() json.RawMessage { return nil }}
	n.address.Store("")
	if err := n.claim(ctx); err != nil {
		return nil, err
	}
	err := n.removeDead(ctx)
	if err == nil && o.Only {
		err = n.removeNamesake(ctx)
	}
	if err == nil {
		err = n.register(ctx, o.Only)
	}
	if err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

// maxNodes is the maximum number of nodes that share a database.
const maxNodes = 1000

// claim takes the first free claim.
func (n *Node) claim(ctx context.Context) error {
	for slot := 1; slot <= maxNodes; slot++ {
		release, err := n.db.Claim(ctx, claimName(slot))
		if fault.CodeOf(err) == fault.Conflict {
			continue
		}
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.slot, n.release = slot, release
		n.mu.Unlock()
		return nil
	}
	return fault.New(fault.Limit, "%d nodes share this database already", maxNodes)
}

func claimName(slot int) string { return fmt.Sprintf("node%d", slot) }

// Name returns the node's name for display; "" for nil.
func (n *Node) Name() string {
	if n == nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// SetWatching sets the function that reports whether a client here follows the events
// of all nodes.
func (n *Node) SetWatching(ask func() bool) { n.watching = ask }

// SetLoad sets the function that returns the node's load, for display.
func (n *Node) SetLoad(load func() json.RawMessage) { n.load = load }

// Watched reports whether a client of another node follows the events of all nodes.
func (n *Node) Watched() bool { return n.watched.Load() }

// Leave removes the node. The other nodes take over the work it still has.
func (n *Node) Leave(ctx context.Context) error {
	if n.stop != nil {
		n.stop()
		n.work.Wait()
	}
	err := n.unregister(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	return errors.Join(err, n.release())
}

// register inserts the node's row. Names are unique: if the name is taken, the node
// gets a suffix, or with only, a conflict.
func (n *Node) register(ctx context.Context, only bool) error {
	var name string
	load := string(n.load())
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
		taken, err := db.All(ctx, tx, db.Column[string],
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
	load := string(n.load())
	err = n.db.Write(ctx, func(tx *db.Tx) (err error) {
		if now, err = tx.Now(ctx); err != nil {
			return err
		}
		skew = time.Since(now)
		n.mu.Lock()
		slot := n.slot
		n.mu.Unlock()
		rows, err := tx.Exec(ctx, `UPDATE nodes SET beat = $2, skew = $3, slot = $4, state = $5, address = $6, watches = $7, load = $8 WHERE id = $1`,
			n.ID, now.UnixMicro(), skew.Microseconds(), slot, n.state(), n.address.Load(), n.watching(), load)
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

// drainTimeout limits how long announcing the shutdown may take.
const drainTimeout = 2 * time.Second

// SetAddress sets the address that other nodes see. Nil is no node, here and below:
// nothing is announced.
func (n *Node) SetAddress(address string) {
	if n != nil {
		n.address.Store(address)
	}
}

// AnnounceDrain announces that the node is about to leave, also when ctx has ended.
func (n *Node) AnnounceDrain(ctx context.Context) {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	n.draining.Store(true)
	if _, err := n.heartbeat(ctx); err != nil {
		n.options.Log.WarnContext(ctx, "shutdown not announced to other nodes", "error", err)
	}
}

// Announce stores the node's current state now and notifies the other nodes.
func (n *Node) Announce(ctx context.Context) {
	if n == nil {
		return
	}
	_, err := n.heartbeat(ctx)
	if err == nil {
		err = n.db.Notify(ctx, topic, "look")
	}
	if err != nil && ctx.Err() == nil {
		n.options.Log.WarnContext(ctx, "state not announced to other nodes", "error", err)
	}
}
