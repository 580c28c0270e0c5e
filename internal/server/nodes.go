package server

import (
	"context"
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
func (srv *Server) isShared() bool { return srv.store != nil && srv.store.Kind() == db.Postgres }

// joinNodes makes the house one of those that share the database. One that is only
// passing, on a file of its own, is none.
func (srv *Server) joinNodes(ctx context.Context) (err error) {
	if !srv.options.Jobs && !srv.isShared() {
		return nil
	}
	options := node.Options{Name: srv.config.NodeName(), Version: srv.options.Version, Load: srv.load, Events: srv.bus, Log: srv.log}
	if srv.isShared() {
		options.Silence = nodeSilence
		options.Only = srv.options.Jobs && srv.config.Node != "" // it was chosen
	}
	if srv.node, err = node.Join(ctx, srv.store, options); err != nil || !srv.isShared() {
		return err
	}
	if srv.book, err = guestbook.Open(ctx, srv.store, time.Duration(srv.config.MCP.SessionIdle)); err != nil {
		return err
	}
	srv.visits = visits{srv.book}
	srv.errands, err = remotecall.Open(ctx, srv.store, remotecall.Options{Self: srv.nodeID(), Alive: srv.isAlive, Log: srv.log})
	return err
}

// isAlive tells whether a node is among those that share the database.
func (srv *Server) isAlive(ctx context.Context, id string) (bool, error) {
	list, err := node.List(ctx, srv.store)
	return slices.ContainsFunc(list, func(i node.Info) bool { return i.ID == id && i.State != "silent" }), err
}

// couriers carry clients' messages to the nodes they are about.
func (srv *Server) couriers() hub.Nodes {
	if srv.errands == nil {
		return nil // not a typed nil
	}
	return srv.errands
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
func (srv *Server) nodeID() string {
	if srv.node == nil {
		return ""
	}
	return srv.node.ID
}

// jobNode is the same for jobs. A file's jobs are one process's at a time.
func (srv *Server) jobNode() string {
	if !srv.isShared() {
		return ""
	}
	return srv.nodeID()
}

// liveAsNode begins to live among the others: to be heard of, to hear, and to go on
// WithLive what dead ones leave.
func (srv *Server) liveAsNode(ctx context.Context) {
	if srv.node == nil {
		return
	}
	var estates []node.Estate
	if srv.talk != nil {
		estates = append(estates, srv.talk)
		srv.hear(ctx, talkTopic, srv.talk.Receive)
	}
	if srv.jobs != nil && srv.jobNode() != "" {
		estates = append(estates, srv.jobs)
	}
	if srv.isShared() {
		estates = append(estates, srv.scripts.sessions)
		srv.hear(ctx, script.Topic, func(string) {
			if err := srv.scripts.published.Reload(ctx); err != nil && ctx.Err() == nil {
				srv.log.WarnContext(ctx, "scripts of other nodes not taken over", "error", err)
			}
		})
		srv.work.Go(func() { srv.book.Tidy(ctx) })
		srv.work.Go(func() { srv.errands.Serve(ctx, srv.hub.HandleRemote) })
		srv.node.Watches(srv.hud.HasReaders)
		srv.heard.begun = make(chan struct{})
		srv.work.Go(func() { srv.relayEvents(ctx) })
		srv.hear(ctx, eventTopic, func(word string) { srv.heardEvents(ctx, word) })
	}
	srv.node.Run(ctx, estates...)
}

// tell is a way to say something to all nodes that hear a topic.
func (srv *Server) tell(topic string) func(context.Context, string) {
	if !srv.isShared() {
		return nil
	}
	return func(ctx context.Context, word string) {
		if err := srv.store.Notify(ctx, topic, word); err != nil {
			srv.log.WarnContext(ctx, "other nodes not told", "topic", topic, "error", err)
		}
	}
}

// hear has f called with what nodes say on a topic, or "" when something may have
// been missed.
func (srv *Server) hear(ctx context.Context, topic string, f func(word string)) {
	if !srv.isShared() {
		return
	}
	srv.work.Go(func() {
		_ = srv.store.Listen(ctx, topic, func(news db.Notification) { f(news.Payload) }) // it ends with the house
	})
}

// nodeListens tells the others where we are.
func (srv *Server) nodeListens(address string) {
	if srv.node != nil {
		srv.node.Listening(address)
	}
}

// nodeDrains tells the others that we are about to go.
func (srv *Server) nodeDrains(ctx context.Context) {
	if srv.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if err := srv.node.Drain(ctx); err != nil {
		srv.log.WarnContext(ctx, "other nodes not told that this one leaves", "error", err)
	}
}

// nodeWatches tells the others that somebody here looks on, so that they tell all
// that happens.
func (srv *Server) nodeWatches(ctx context.Context) {
	if srv.node == nil || !srv.isShared() {
		return
	}
	if err := srv.node.Announce(ctx); err != nil && ctx.Err() == nil {
		srv.log.WarnContext(ctx, "other nodes not told that somebody looks on", "error", err)
	}
}
