// Package eventrelay publishes the events of each node on the buses of the other nodes
// that share its database. Events are numbered, so that a node notices what it missed.
package eventrelay

import (
	"cmp"
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
	startTimeout = 2 * time.Second // for the first notification
	countTimeout = 2 * time.Second // for the other nodes' counts
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

	sent      atomic.Uint64 // number of events sent by this node
	receiving atomic.Bool   // notifications arrive, or Ready stopped waiting for them
	started   chan struct{} // closed when the first notification arrives
	timeout   time.Duration // for counts; zero means countTimeout
	counts    counts
}

// New returns a relay that Run starts.
func New(options Options) *Relay {
	return &Relay{options: options, started: make(chan struct{})}
}

// message is what one node sends to the others.
type message struct {
	Node   string         `json:"node"`   // its name
	ID     string         `json:"id"`     // of the node
	Before uint64         `json:"before"` // number of events it sent before these
	Events []relayedEvent `json:"events"`
	// A node that may have missed events asks all others for their counts.
	Ask bool   `json:"ask,omitempty"`
	To  string `json:"to,omitempty"` // id of the node that asked; such a reply has no events
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
	_ = r.options.Store.Listen(ctx, topic, func(n db.Notification) { r.receive(ctx, n.Payload) }) // it ends with ctx
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

// sendBatch sends events. They are counted afterwards: a node that gets the count
// before that has not missed them.
func (r *Relay) sendBatch(ctx context.Context, batch []relayedEvent) {
	if len(batch) == 0 {
		return
	}
	r.notify(ctx, message{Before: r.sent.Load(), Events: batch})
	r.sent.Add(uint64(len(batch)))
}

func (r *Relay) notify(ctx context.Context, m message) {
	m.Node, m.ID = r.options.Node.Name(), r.options.NodeID
	text, err := json.Marshal(m)
	if err == nil {
		err = r.options.Store.Notify(ctx, topic, string(text))
	}
	if err != nil {
		r.options.Log.DebugContext(ctx, "events not sent to other nodes", "error", err)
	}
}

// receive publishes the events of another node, each once, followed by an event with
// the number of missed ones. An empty payload means that notifications may have been
// missed. Calls do not overlap.
func (r *Relay) receive(ctx context.Context, payload string) {
	if payload == "" {
		again := r.receiving.Swap(true)
		if !again {
			close(r.started)
		}
		r.counts.doubt(again)
		timeout := cmp.Or(r.timeout, countTimeout)
		r.work.Go(func() { r.askCounts(ctx, again, timeout) })
		return
	}
	var m message
	if json.Unmarshal([]byte(payload), &m) != nil || m.ID == r.options.NodeID {
		return
	}
	if m.Ask {
		r.work.Go(func() { r.notify(ctx, message{Before: r.sent.Load(), To: m.ID}) })
		return
	}
	if m.To != "" && m.To != r.options.NodeID {
		return
	}
	if missing := r.counts.update(&m); missing > 0 {
		r.options.Bus.Relay(m.Node, missed(missing))
	}
	for _, e := range m.Events {
		r.options.Bus.Relay(m.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data, Owner: e.Owner, Readers: e.Readers})
	}
}

// Ready waits until notifications of other nodes arrive, so that clients that follow
// events from the start miss none. After a timeout it returns; clients then get an
// event with the number of missed ones later.
func (r *Relay) Ready(ctx context.Context) {
	select {
	case <-r.started:
	case <-time.After(startTimeout):
		r.receiving.Store(true)
	case <-ctx.Done():
	}
}

// askCounts asks all nodes how many events they sent. How many events of a node that
// does not reply were missed is unknown.
func (r *Relay) askCounts(ctx context.Context, again bool, timeout time.Duration) {
	r.notify(ctx, message{Ask: true})
	if !again { // no client followed events yet
		return
	}
	select {
	case <-time.After(timeout):
	case <-ctx.Done():
		return
	}
	for _, name := range r.counts.silent() {
		r.options.Bus.Relay(name, missed(0))
	}
}

func missed(count uint64) event.Remote {
	data, _ := json.Marshal(event.Missed{Count: count}) // cannot fail
	return event.Remote{Type: event.Missed{}.EventType(), Data: data}
}
