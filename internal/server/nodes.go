package server

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/mcp/hub"
	guestbook "github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
)

// nodeSilence is how long nothing must be heard of a node whose connection to
// Postgres is gone before the others go on with what it had in hand.
const nodeSilence = 3 * time.Second

// leaveTime bounds telling the others that we go.
const leaveTime = 2 * time.Second

// talkTopic is where nodes tell each other that messages were answered.
const talkTopic = "talk"

// isShared tells whether several machines may use the database.
func (h *House) isShared() bool { return h.store != nil && h.store.Kind() == db.Postgres }

// nodeName is what this machine is called among others.
func (c *Config) nodeName() string {
	if c.Node != "" {
		return c.Node
	}
	name, _ := os.Hostname() // an empty one is called something
	return name
}

// joinNodes makes the house one of those that share the database. One that is only
// passing, on a file of its own, is none.
func (h *House) joinNodes(ctx context.Context) (err error) {
	if !h.options.Jobs && !h.isShared() {
		return nil
	}
	options := node.Options{Name: h.config.nodeName(), Version: h.options.Version, Load: h.load, Events: h.bus, Log: h.log}
	if h.isShared() {
		options.Silence = nodeSilence
		options.Only = h.options.Jobs && h.config.Node != "" // it was chosen
	}
	if h.node, err = node.Join(ctx, h.store, options); err != nil || !h.isShared() {
		return err
	}
	if h.book, err = guestbook.Open(ctx, h.store, time.Duration(h.config.MCP.SessionIdle)); err != nil {
		return err
	}
	h.visits = visits{h.book}
	h.errands, err = remotecall.Open(ctx, h.store, remotecall.Options{Self: h.nodeID(), Alive: h.isAlive, Log: h.log})
	return err
}

// isAlive tells whether a node is among those that share the database.
func (h *House) isAlive(ctx context.Context, id string) (bool, error) {
	list, err := node.List(ctx, h.store)
	return slices.ContainsFunc(list, func(i node.Info) bool { return i.ID == id && i.State != "silent" }), err
}

// couriers carry clients' messages to the nodes they are about.
func (h *House) couriers() hub.Nodes {
	if h.errands == nil {
		return nil // not a typed nil
	}
	return h.errands
}

// visits is the book of clients' sessions as the hub sees it.
type visits struct{ *guestbook.Book }

func (v visits) Save(ctx context.Context, id string, one hub.SessionState) error {
	return v.Book.Save(ctx, id, guestbook.Visit{Place: one.Namespace, Who: one.Owner, Version: one.Version, Caps: one.Caps, Level: one.Level})
}

func (v visits) Find(ctx context.Context, id string) (hub.SessionState, bool, error) {
	one, ok, err := v.Book.Find(ctx, id)
	return hub.SessionState{Namespace: one.Place, Owner: one.Who, Version: one.Version, Caps: one.Caps, Level: one.Level}, ok, err
}

// nodeID is this house among those that share the database; "" when it is alone.
func (h *House) nodeID() string {
	if h.node == nil {
		return ""
	}
	return h.node.ID
}

// jobNode is the same for jobs. A file's jobs are one process's at a time.
func (h *House) jobNode() string {
	if !h.isShared() {
		return ""
	}
	return h.nodeID()
}

// liveAsNode begins to live among the others: to be heard of, to hear, and to go on
// with what dead ones leave.
func (h *House) liveAsNode(ctx context.Context) {
	if h.node == nil {
		return
	}
	var estates []node.Estate
	if h.talk != nil {
		estates = append(estates, h.talk)
		h.hear(ctx, talkTopic, h.talk.Receive)
	}
	if h.jobs != nil && h.jobNode() != "" {
		estates = append(estates, h.jobs)
	}
	if h.isShared() {
		estates = append(estates, h.scripts.sessions)
		h.hear(ctx, script.Topic, func(string) {
			if err := h.scripts.published.Reload(ctx); err != nil && ctx.Err() == nil {
				h.log.WarnContext(ctx, "scripts of other nodes not taken over", "error", err)
			}
		})
		h.work.Go(func() { h.book.Tidy(ctx) })
		h.work.Go(func() { h.errands.Serve(ctx, h.hub.HandleRemote) })
		h.node.Watches(h.hud.HasReaders)
		h.heard.begun = make(chan struct{})
		h.work.Go(func() { h.relayEvents(ctx) })
		h.hear(ctx, eventTopic, func(word string) { h.heardEvents(ctx, word) })
	}
	h.node.Run(ctx, estates...)
}

// tell is a way to say something to all nodes that hear a topic.
func (h *House) tell(topic string) func(context.Context, string) {
	if !h.isShared() {
		return nil
	}
	return func(ctx context.Context, word string) {
		if err := h.store.Notify(ctx, topic, word); err != nil {
			h.log.WarnContext(ctx, "other nodes not told", "topic", topic, "error", err)
		}
	}
}

// hear has f called with what nodes say on a topic, or "" when something may have
// been missed.
func (h *House) hear(ctx context.Context, topic string, f func(word string)) {
	if !h.isShared() {
		return
	}
	h.work.Go(func() {
		_ = h.store.Listen(ctx, topic, func(news db.Notification) { f(news.Payload) }) // it ends with the house
	})
}

// nodeListens tells the others where we are.
func (h *House) nodeListens(address string) {
	if h.node != nil {
		h.node.Listening(address)
	}
}

// nodeDrains tells the others that we are about to go.
func (h *House) nodeDrains(ctx context.Context) {
	if h.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := h.node.Drain(ctx); err != nil {
		h.log.WarnContext(ctx, "other nodes not told that this one leaves", "error", err)
	}
}

// nodeWatches tells the others that somebody here looks on, so that they tell all
// that happens.
func (h *House) nodeWatches(ctx context.Context) {
	if h.node == nil || !h.isShared() {
		return
	}
	if err := h.node.Announce(ctx); err != nil && ctx.Err() == nil {
		h.log.WarnContext(ctx, "other nodes not told that somebody looks on", "error", err)
	}
}
