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
func (srv *Server) relayEvents(ctx context.Context) {
	sub := srv.bus.Subscribe(event.Options{Buffer: 16 * relayBatch, Wants: srv.tellsOf})
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
		batch := srv.gather(nil, first)
		for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
			if batch = srv.gather(batch, e); len(batch) == relayBatch {
				srv.tellEvents(ctx, batch)
				batch = nil
			}
		}
		srv.tellEvents(ctx, batch)
	}
}

// tellEvents says a batch. It counts once it was said: whoever is told the number
// before has not missed the batch.
func (srv *Server) tellEvents(ctx context.Context, batch []relayedEvent) {
	if len(batch) == 0 {
		return
	}
	srv.tellNodes(ctx, relayed{Before: srv.heard.own.Load(), Events: batch})
	srv.heard.own.Add(uint64(len(batch)))
}

// tellNodes says something about events to all nodes.
func (srv *Server) tellNodes(ctx context.Context, said relayed) {
	said.Node, said.ID = srv.node.Name(), srv.node.ID
	text, err := json.Marshal(said)
	if err == nil {
		err = srv.store.Notify(ctx, eventTopic, string(text))
	}
	if err != nil {
		srv.log.DebugContext(ctx, "events not told to other nodes", "error", err)
	}
}

// tellsOf says whether other nodes are told of events of a type.
func (srv *Server) tellsOf(kind string) bool { return !isNoise(kind) || srv.node.Watched() }

// gather adds an event to those that are told.
func (srv *Server) gather(batch []relayedEvent, e event.Event) []relayedEvent {
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
func (srv *Server) heardEvents(ctx context.Context, word string) {
	if word == "" {
		again := srv.heard.tuned.Swap(true)
		if !again {
			close(srv.heard.begun)
		}
		srv.heard.doubt(again)
		patience := cmp.Or(srv.heard.patience, numberTime)
		srv.work.Go(func() { srv.askNumbers(ctx, again, patience) })
		return
	}
	var told relayed
	if json.Unmarshal([]byte(word), &told) != nil || told.ID == srv.node.ID {
		return
	}
	if told.Ask {
		srv.work.Go(func() { srv.tellNodes(ctx, relayed{Before: srv.heard.own.Load(), To: told.ID}) })
		return
	}
	if told.To != "" && told.To != srv.node.ID {
		return
	}
	if missing := srv.heard.count(&told); missing > 0 {
		srv.bus.Relay(told.Node, missed(missing))
	}
	for _, e := range told.Events {
		srv.bus.Relay(told.Node, event.Remote{Type: e.Type, Key: e.Key, Data: e.Data})
	}
}

// tuneTime is how long the doors wait for what other nodes tell to arrive.
const tuneTime = 2 * time.Second

// hearBeforeOpening waits until what other nodes tell arrives, so that who looks on
// from the first moment misses nothing. Where that takes too long they are told, later,
// that they may have.
func (srv *Server) hearBeforeOpening(ctx context.Context) {
	if srv.heard.begun == nil {
		return
	}
	select {
	case <-srv.heard.begun:
	case <-time.After(tuneTime):
		srv.heard.tuned.Store(true)
	case <-ctx.Done():
	}
}

// numberTime is how long nodes have to say how many events they told.
const numberTime = 2 * time.Second

// askNumbers asks all nodes how many events they told. Of those that should have
// been heard and do not answer nobody can tell how many were missed.
func (srv *Server) askNumbers(ctx context.Context, again bool, patience time.Duration) {
	srv.tellNodes(ctx, relayed{Ask: true})
	if !again { // nobody looked on yet
		return
	}
	select {
	case <-time.After(patience):
	case <-ctx.Done():
		return
	}
	for _, name := range srv.heard.silent() {
		srv.bus.Relay(name, missed(0))
	}
}

func missed(count uint64) event.Remote {
	data, _ := json.Marshal(event.Missed{Count: count}) // it always encodes
	return event.Remote{Type: event.Missed{}.EventType(), Data: data}
}
