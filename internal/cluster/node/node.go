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
	if err := database.Migrate(ctx, "node", Migrations); err != nil {
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
