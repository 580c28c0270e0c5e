package server

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/event"
)

// eventTopic is where nodes tell each other what happens.
const eventTopic = "events"

const (
	relayTime  = 100 * time.Millisecond // events are gathered for so long
	relayBatch = 256
)

// relayed is what one node tells the others.
type relayed struct {
	Node   string         `json:"node"`   // its name
	ID     string         `json:"id"`     // which is another at every start
	Before uint64         `json:"before"` // how many events it told before these
	Events []relayedEvent `json:"events"`
	// Who may have missed something asks all for their number, and is answered it.
	Ask bool   `json:"ask,omitempty"`
	To  string `json:"to,omitempty"` // the id of who asked; such an answer has no events
}

type relayedEvent struct {
	Type string          `json:"type"`
	Key  string          `json:"key,omitempty"`
	Data json.RawMessage `json:"data"`
}

// isNoise tells events that are many, and told to others only while somebody there
// looks on.
func isNoise(kind string) bool {
	return strings.HasPrefix(kind, "log") || strings.HasPrefix(kind, "tool.") || strings.HasSuffix(kind, "progress") || strings.HasSuffix(kind, "progressed")
}

// relayEvents tells the other nodes what happens here until ctx ends, some at a
// time. Nobody waits for it: of what is too much they are told the count.
func (h *House) relayEvents(ctx context.Context) {
	sub := h.bus.Subscribe(event.Options{Buffer: 16 * relayBatch, Wants: h.tellsOf})
	defer sub.Close()
	for {
		first, err := sub.Next(ctx)
		if err != nil {
			return
		}
		select {
		case <-time.After(relayTime):
		case <-ctx.Done(): // the last of it
		}
		batch := h.gather(nil, first)
		for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
			if batch = h.gather(batch, e); len(batch) == relayBatch {
				h.tellEvents(ctx, batch)
				batch = nil
			}
		}
		h.tellEvents(ctx, batch)
	}
}

// tellEvents says a batch. It counts once it was said: whoever is told the number
// before has not missed the batch.
func (h *House) tellEvents(ctx context.Context, batch []relayedEvent) {
	if len(batch) == 0 {
		return
	}
	h.tellNodes(ctx, relayed{Before: h.heard.own.Load(), Events: batch})
	h.heard.own.Add(uint64(len(batch)))
}

// tellNodes says something about events to all nodes.
func (h *House) tellNodes(ctx context.Context, said relayed) {
	said.Node, said.ID = h.node.Name(), h.node.ID
	text, err := json.Marshal(said)
	if err == nil {
		err = h.store.Notify(ctx, eventTopic, string(text))
	}
	if err != nil {
		h.log.DebugContext(ctx, "events not told to other nodes", "error", err)
	}
}

// tellsOf says whether other nodes are told of events of a type.
func (h *House) tellsOf(kind string) bool { return !isNoise(kind) || h.node.Watched() }

// gather adds an event to those that are told.
func (h *House) gather(batch []relayedEvent, e event.Event) []relayedEvent {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return batch
	}
	one := relayedEvent{Type: e.Type, Data: data}
	if keyed, ok := e.Data.(event.Keyed); ok {
		one.Key = keyed.EventKey()
	}
	return append(batch, one)
}

// heardEvents publishes what another node told: once, though it may be told twice,
// and with a word on what was told and not heard. An empty word says that something
// may have been. It is not called twice at once.
func (h *House) heardEvents(ctx context.Context, word string) {
	if word == "" {
		again := h.heard.tuned.Swap(true)
		if !again {
			close(h.heard.begun)
		}
		h.heard.doubt(again)
		patience := cmp.Or(h.heard.patience, numberTime)
		h.work.Go(func() { h.askNumbers(ctx, again, patience) })
		return
	}
	var told relayed
	if json.Unmarshal([]byte(word), &told) != nil || told.ID == h.node.ID {
		return
	}
	if told.Ask {
		h.work.Go(func() { h.tellNodes(ctx, relayed{Before: h.heard.own.Load(), To: told.ID}) })
		return
	}
	if told.To != "" && told.To != h.node.ID {
		return
	}
	if missing := h.heard.count(&told); missing > 0 {
		h.bus.Relay(told.Node, missed(missing))
	}
	for _, e := range told.Events {
		h.bus.Relay(told.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data})
	}
}

// tuneTime is how long the doors wait for what other nodes tell to arrive.
const tuneTime = 2 * time.Second

// hearBeforeOpening waits until what other nodes tell arrives, so that who looks on
// from the first moment misses nothing. Where that takes too long they are told, later,
// that they may have.
func (h *House) hearBeforeOpening(ctx context.Context) {
	if h.heard.begun == nil {
		return
	}
	select {
	case <-h.heard.begun:
	case <-time.After(tuneTime):
		h.heard.tuned.Store(true)
	case <-ctx.Done():
	}
}

// numberTime is how long nodes have to say how many events they told.
const numberTime = 2 * time.Second

// askNumbers asks all nodes how many events they told. Of those that should have
// been heard and do not answer nobody can tell how many were missed.
func (h *House) askNumbers(ctx context.Context, again bool, patience time.Duration) {
	h.tellNodes(ctx, relayed{Ask: true})
	if !again { // nobody looked on yet
		return
	}
	select {
	case <-time.After(patience):
	case <-ctx.Done():
		return
	}
	for _, name := range h.heard.silent() {
		h.bus.Relay(name, missed(0))
	}
}

func missed(count uint64) event.Remote {
	data, _ := json.Marshal(event.Missed{Count: count}) // it always encodes
	return event.Remote{Type: event.Missed{}.EventType(), Data: data}
}
