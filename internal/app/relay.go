package app

import (
	"context"
	"encoding/json"
	"strings"
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
	Node   string         `json:"node"` // its name
	ID     string         `json:"id"`
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
// time. Nobody waits for it: what is too much is left out.
func (h *House) relayEvents(ctx context.Context) {
	sub := h.bus.Subscribe(event.Options{Buffer: 4 * relayBatch})
	defer sub.Close()
	h.node.Watches(h.hud.Watched)
	for {
		first, err := sub.Next(ctx)
		if err != nil {
			return
		}
		batch := h.gather(nil, first)
		until := time.After(relayTime)
		for open := true; open && len(batch) < relayBatch; {
			select {
			case <-until:
				open = false
			case <-ctx.Done():
				return
			case <-time.After(relayTime / 10):
				for e, ok := sub.Poll(); ok && len(batch) < relayBatch; e, ok = sub.Poll() {
					batch = h.gather(batch, e)
				}
			}
		}
		if len(batch) == 0 {
			continue
		}
		text, err := json.Marshal(relayed{h.node.Name(), h.node.ID, batch})
		if err == nil {
			err = h.store.Notify(ctx, eventTopic, string(text))
		}
		if err != nil {
			h.log.DebugContext(ctx, "events not told to other nodes", "error", err)
		}
	}
}

// gather adds an event to those that are told.
func (h *House) gather(batch []relayedEvent, e event.Event) []relayedEvent {
	if isNoise(e.Type) && !h.node.Watched() {
		return batch
	}
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

// heardEvents publishes what another node told, or that something of it may have
// been lost.
func (h *House) heardEvents(word string) {
	var told relayed
	if word == "" {
		h.bus.Missed()
		return
	}
	if json.Unmarshal([]byte(word), &told) != nil || told.ID == h.node.ID {
		return
	}
	for _, e := range told.Events {
		h.bus.Relay(told.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data})
	}
}
