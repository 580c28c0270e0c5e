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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options configure a node.
type Options struct {
	Name    string // for display; a second node with the same name gets a suffix
	Only    bool   // fail instead of adding a suffix to the name
	Version string
	// Silence is how long a node whose claim is free must send no heartbeat before it
	// is dead. Zero means that a free claim is enough.
	Silence time.Duration
	Load    func() json.RawMessage // the node's load, for display; may be nil
	Events  *event.Bus             // may be nil
	Log     *slog.Logger           // nil discards
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
	if err := database.Migrate(ctx, "node", migrations); err != nil {
		return nil, err
	}
	n := &Node{ID: strings.ToLower(rand.Text()[:16]), db: database, options: o, name: o.Name, since: time.Now(), watching: func() bool { return false }}
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

// Name returns the node's name for display.
func (n *Node) Name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// SetAddress sets the address that other nodes see.
func (n *Node) SetAddress(address string) { n.address.Store(address) }

// Drain announces that the node is about to leave.
func (n *Node) Drain(ctx context.Context) error {
	n.draining.Store(true)
	_, err := n.heartbeat(ctx)
	return err
}

// Announce stores the node's current state now and notifies the other nodes.
func (n *Node) Announce(ctx context.Context) error {
	if _, err := n.heartbeat(ctx); err != nil {
		return err
	}
	return n.db.Notify(ctx, topic, "look")
}

// SetWatching sets the function that reports whether a client here follows the events
// of all nodes.
func (n *Node) SetWatching(ask func() bool) { n.watching = ask }

// Watched reports whether a client of another node follows the events of all nodes.
func (n *Node) Watched() bool { return n.watched.Load() }

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
