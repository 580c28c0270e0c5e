// Package eventrelay publishes the events of each node on the buses of the other nodes
// that share its database. Events are numbered, so that a node notices what it missed.
package eventrelay

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// topic is the notification channel of relayed events.
const topic = "events"

const (
	batchDelay   = 100 * time.Millisecond // events are collected for this long
	batchSize    = 256
	startTimeout = 10 * time.Second // for the first notification
)

// Node is the part of this node that the relay needs.
type Node interface {
	Name() string
	Watched() bool // a client of another node follows the events
}

// Options configure a Relay.
type Options struct {
	Bus    *event.Bus
	Store  *db.DB
	Node   Node
	NodeID string // new at every start
	Log    *slog.Logger
}

// Relay sends this node's events to the other nodes and publishes theirs here.
type Relay struct {
	options Options
	work    sync.WaitGroup

	sent      uint64            // number of events sent by this node; only for send
	receiving atomic.Bool       // notifications arrive, or Ready stopped waiting for them
	started   chan struct{}     // closed when the first notification arrives
	senders   map[string]sender // the other nodes by name; only for receive
}

// sender is another node from which events came.
type sender struct {
	id   string
	sent uint64 // number of its events so far
}

// New returns a relay that Run starts.
func New(options Options) *Relay {
	return &Relay{options: options, started: make(chan struct{}), senders: map[string]sender{}}
}

// message is what one node sends to the others.
type message struct {
	Node   string         `json:"node"`   // its name
	ID     string         `json:"id"`     // of the node
	Before uint64         `json:"before"` // number of events it sent before these
	Events []relayedEvent `json:"events"`
}

type relayedEvent struct {
	Type string          `json:"type"`
	Key  string          `json:"key,omitempty"`
	Data json.RawMessage `json:"data"`

	Owner   principal.Owner `json:"owner,omitzero"`
	Readers []string        `json:"readers,omitempty"`
}

// Run relays events in both directions until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	r.work.Go(func() { r.send(ctx) })
	_ = r.options.Store.Listen(ctx, topic, func(n db.Notification) { r.receive(n.Payload) }) // it ends with ctx
	r.work.Wait()
}

// isFrequent reports whether events of a type are sent only while a client of another
// node follows them.
func isFrequent(kind string) bool {
	return strings.HasPrefix(kind, "log") || strings.HasPrefix(kind, "tool.") || strings.HasSuffix(kind, "progress") || strings.HasSuffix(kind, "progressed")
}

// send sends this node's events in batches until ctx ends. Publishers do not wait for
// it: events that do not fit into the buffer are reported as a count.
func (r *Relay) send(ctx context.Context) {
	sub := r.options.Bus.Subscribe(event.Options{Buffer: 16 * batchSize, Wants: func(kind string) bool {
		return !isFrequent(kind) || r.options.Node.Watched()
	}})
	defer sub.Close()
	for {
		first, err := sub.Next(ctx)
		if err != nil {
			return
		}
		select {
		case <-time.After(batchDelay):
		case <-ctx.Done(): // the last batch
		}
		batch := appendEvent(nil, first)
		for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
			if batch = appendEvent(batch, e); len(batch) == batchSize {
				r.sendBatch(ctx, batch)
				batch = nil
			}
		}
		r.sendBatch(ctx, batch)
	}
}

func appendEvent(batch []relayedEvent, e event.Event) []relayedEvent {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return batch
	}
	one := relayedEvent{Type: e.Type, Data: data, Owner: e.Owner, Readers: e.Readers}
	if keyed, ok := e.Data.(event.Keyed); ok {
		one.Key = keyed.EventKey()
	}
	return append(batch, one)
}

// sendBatch sends events.
func (r *Relay) sendBatch(ctx context.Context, batch []relayedEvent) {
	if len(batch) == 0 {
		return
	}
	text, err := json.Marshal(message{Node: r.options.Node.Name(), ID: r.options.NodeID, Before: r.sent, Events: batch})
	if err == nil {
		err = r.options.Store.Notify(ctx, topic, string(text))
	}
	if err != nil {
		r.options.Log.DebugContext(ctx, "events not sent to other nodes", "error", err)
	}
	r.sent += uint64(len(batch))
}

// receive publishes the events of another node, each once, and before them that some are
// missing. An empty payload means that notifications of any node may have been missed. Calls
// do not overlap.
func (r *Relay) receive(payload string) {
	if payload == "" {
		if !r.receiving.Swap(true) { // nobody followed events yet
			close(r.started)
			return
		}
		clear(r.senders)
		r.options.Bus.Relay(r.options.Node.Name(), missed())
		return
	}
	var m message
	if json.Unmarshal([]byte(payload), &m) != nil || m.ID == r.options.NodeID {
		return
	}
	if r.removeKnown(&m) {
		r.options.Bus.Relay(m.Node, missed())
	}
	for _, e := range m.Events {
		r.options.Bus.Relay(m.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data, Owner: e.Owner, Readers: e.Readers})
	}
}

// removeKnown removes from a message the events that were received before, and reports
// whether events before it are missing.
func (r *Relay) removeKnown(m *message) (gap bool) {
	from, end := r.senders[m.Node], m.Before+uint64(len(m.Events))
	if from.id != m.ID { // its first message, or the first after it was restarted
		r.senders[m.Node] = sender{m.ID, end}
		return false
	}
	if from.sent > m.Before {
		m.Events = m.Events[min(from.sent-m.Before, uint64(len(m.Events))):]
	}
	r.senders[m.Node] = sender{m.ID, max(end, from.sent)}
	return from.sent < m.Before
}

// Ready waits until notifications of other nodes arrive, so that clients that follow
// events from the start miss none. After a timeout it returns; clients are then told
// later that they may have missed some.
func (r *Relay) Ready(ctx context.Context) {
	select {
	case <-r.started:
	case <-time.After(startTimeout):
		r.receiving.Store(true)
	case <-ctx.Done():
	}
}

// missed is the event that tells clients that events are missing.
func missed() event.Remote {
	data, _ := json.Marshal(event.Missed{}) // cannot fail
	return event.Remote{Type: event.Missed{}.EventType(), Data: data}
}
