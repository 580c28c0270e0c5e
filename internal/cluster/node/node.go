// Package node tells the processes that share a database of each other. Each has a
// row, and holds a claim that ends with it: a lock of the database's, on Postgres
// of a connection, with SQLite of the operating system. Who is dead is told by the
// claim and, where a connection can break and be made again, by silence on the
// database's own clock; no node's clock is asked. One that keeps its claim and is
// silent for long is as good as dead. What a dead node had in hand, its estate, is
// adopted by the others.
//
// A node that was only cut off, or frozen, may be taken for dead. It finds its row gone when it
// comes back, and makes another; what was adopted meanwhile is not its own any
// more. Those who keep what nodes have in hand see to that: every write says whose
// the row must be.
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

// Options are a node's choices.
type Options struct {
	Name    string // what people call it; a second one of the same name gets a suffix
	Only    bool   // rather than with a suffix it does not join at all
	Version string
	// Silence is how long nothing must be heard of a node whose claim is free,
	// before it is dead. Zero: a free claim is enough, and nobody needs to be heard.
	Silence time.Duration
	Load    func() json.RawMessage // how much it has to do, for those who look on; nil tells nothing
	Events  *event.Bus             // may be nil
	Log     *slog.Logger           // nil is nobody
}

// Work is what nodes have in hand that others go on with.
type Work interface {
	// Owners are the nodes that have something in hand.
	Owners(ctx context.Context) ([]string, error)
	// TakeOver makes what nodes that are gone had in hand this one's.
	TakeOver(ctx context.Context, gone []string) error
	// Recheck lets go of what others have adopted of this node's.
	Recheck(ctx context.Context) error
}

// Node is this process among its like.
type Node struct {
	ID string

	db      *db.DB
	options Options

	address  atomic.Value // string
	draining atomic.Bool
	watching func() bool
	watched  atomic.Bool // another node's people look on

	stop context.CancelFunc
	work sync.WaitGroup

	mu           sync.Mutex
	name         string
	slot         int
	release      func() error
	owned        []Work
	disconnected bool      // the connection was away: the claim may be lost
	since        time.Time // when it was last made: what others did not say before then is no sign
	lastBeat     time.Time // when it was last heard of itself, by the database's clock
}

// topic is where nodes tell each other that one came or went.
const topic = "nodes"

// Join makes this process a node.
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

// maxNodes bounds how many nodes a database has.
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

// Name is what people call the node.
func (n *Node) Name() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// SetAddress tells the others where the node is.
func (n *Node) SetAddress(address string) { n.address.Store(address) }

// Drain tells the others that the node is about to leave.
func (n *Node) Drain(ctx context.Context) error {
	n.draining.Store(true)
	_, err := n.heartbeat(ctx)
	return err
}

// Announce tells the others at once how this node is now.
func (n *Node) Announce(ctx context.Context) error {
	if _, err := n.heartbeat(ctx); err != nil {
		return err
	}
	return n.db.Notify(ctx, topic, "look")
}

// SetWatching says how to find out whether somebody here looks on at all nodes.
func (n *Node) SetWatching(ask func() bool) { n.watching = ask }

// Watched tells whether somebody elsewhere looks on.
func (n *Node) Watched() bool { return n.watched.Load() }

// Run lets the node live: it is heard of, hears of others, and adopts what dead
// ones leave. It returns at once.
func (n *Node) Run(ctx context.Context, estates ...Work) {
	ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.mu.Lock()
	n.owned = estates
	n.mu.Unlock()
	news := make(chan struct{}, 1)
	n.work.Go(func() { n.listen(ctx, news) })
	n.work.Go(func() { n.loop(ctx, news) })
}

// listen hears that nodes come and go.
func (n *Node) listen(ctx context.Context, news chan<- struct{}) {
	_ = n.db.Listen(ctx, topic, func(heard db.Notification) {
		if heard.Missed { // the connection may have been away, and so the claim's
			n.mu.Lock()
			n.disconnected, n.since = true, time.Now()
			n.mu.Unlock()
		}
		select {
		case news <- struct{}{}:
		default: // it will look anyway
		}
	})
}

// How often a node is heard of, and looks at the others when nobody tells it to.
const (
	beatInterval = time.Second
	pollInterval = 5 * time.Second
)

// frozenAfter is how long nothing must be heard of a node that still has its claim: it
// is frozen, or hangs. Tests are more patient.
var frozenAfter = 10 * time.Second

func (n *Node) loop(ctx context.Context, news <-chan struct{}) {
	every := pollInterval
	if n.options.Silence > 0 {
		every = beatInterval
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := n.step(ctx); err != nil && ctx.Err() == nil {
			n.options.Log.WarnContext(ctx, "nodes not looked at", "error", err)
		}
		select {
		case <-tick.C:
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// step does what is to be done now and then.
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

// keepAlive is heard of, and comes back when it was taken for dead.
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
		_ = release() // it is gone, or to go
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
	n.options.Log.WarnContext(ctx, "this node was cut off and taken for dead; it goes on with what is still its own")
	if err := n.register(ctx, false); err != nil {
		return err
	}
	return n.each(func(e Work) error { return e.Recheck(ctx) })
}

func (n *Node) each(do func(Work) error) error {
	n.mu.Lock()
	estates := n.owned
	n.mu.Unlock()
	var failed []error
	for _, e := range estates {
		failed = append(failed, do(e))
	}
	return errors.Join(failed...)
}

// Sweep adopts what nodes that are gone have left. Who has something in hand is
// asked before who is there: a node is there before it has anything.
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

// Leave takes the node away. What it still has in hand is the others'.
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
