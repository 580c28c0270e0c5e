package app

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/event"
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
	var told uint64
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
				told = h.tellEvents(ctx, told, batch)
				batch = nil
			}
		}
		told = h.tellEvents(ctx, told, batch)
	}
}

// tellEvents says a batch, and returns how many events were told by then.
func (h *House) tellEvents(ctx context.Context, before uint64, batch []relayedEvent) uint64 {
	if len(batch) == 0 {
		return before
	}
	text, err := json.Marshal(relayed{h.node.Name(), h.node.ID, before, batch})
	if err == nil {
		err = h.store.Notify(ctx, eventTopic, string(text))
	}
	if err != nil {
		h.log.DebugContext(ctx, "events not told to other nodes", "error", err)
	}
	return before + uint64(len(batch))
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

// heard is how many events each node has told, by its id.
type heard struct {
	tuned atomic.Bool // something may have been heard before
	told  map[string]uint64
}

// heardEvents publishes what another node told: once, though it may be told twice,
// and with a word on what was told and not heard. An empty word says that something
// may have been. It is not called twice at once.
func (h *House) heardEvents(word string) {
	if word == "" {
		if h.heard.tuned.Swap(true) { // else nobody looked on yet
			h.bus.Missed()
		}
		return
	}
	var told relayed
	if json.Unmarshal([]byte(word), &told) != nil || told.ID == h.node.ID {
		return
	}
	fresh := h.heard.count(&told)
	if fresh > 0 {
		h.bus.Relay(told.Node, missed(fresh))
	}
	for _, e := range told.Events {
		h.bus.Relay(told.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data})
	}
}

// count takes out of a batch what was heard before, and tells how many events were
// told between that and the batch.
func (d *heard) count(told *relayed) (missing uint64) {
	if d.told == nil {
		d.told = map[string]uint64{}
	}
	before, known := d.told[told.ID]
	after := told.Before + uint64(len(told.Events))
	switch {
	case !known:
	case told.Before > before:
		missing = told.Before - before
	case after <= before:
		told.Events = nil
		return 0
	default:
		told.Events = told.Events[before-told.Before:]
	}
	d.told[told.ID] = after
	return missing
}

func missed(count uint64) event.Remote {
	data, _ := json.Marshal(event.Missed{Count: count}) // it always encodes
	return event.Remote{Type: event.Missed{}.EventType(), Data: data}
}
