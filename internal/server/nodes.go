package server

import (
	"context"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/cluster/eventrelay"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
)

// nodeTimeout is how long nothing must be heard of a node whose connection to
// Postgres is gone before the others go on with what it had in hand.
const nodeTimeout = 3 * time.Second

// leaveTimeout bounds telling the others that we go.
const leaveTimeout = 2 * time.Second

// conversationTopic is where nodes tell each other that messages were answered.
const conversationTopic = "talk"

// isShared tells whether several machines may use the database.
func (srv *Server) isShared() bool { return srv.store != nil && srv.store.Kind() == db.Postgres }

// joinNodes makes the server one of those that share the database. One that is only
// passing, on a file of its own, is none.
func (srv *Server) joinNodes(ctx context.Context) (err error) {
	if !srv.options.Jobs && !srv.isShared() {
		return nil
	}
	options := node.Options{Name: srv.config.NodeName(), Version: srv.options.Version, Load: srv.load, Events: srv.bus, Log: srv.log}
	if srv.isShared() {
		options.Silence = nodeTimeout
		options.Only = srv.options.Jobs && srv.config.Node != "" // it was chosen
	}
	if srv.node, err = node.Join(ctx, srv.store, options); err != nil || !srv.isShared() {
		return err
	}
	if srv.sessions, err = sessionstore.Open(ctx, srv.store, time.Duration(srv.config.MCP.SessionIdle)); err != nil {
		return err
	}
	srv.sessionStore = sessionStore{srv.sessions}
	srv.remoteCalls, err = remotecall.Open(ctx, srv.store, remotecall.Options{Self: srv.nodeID(), Alive: srv.isAlive, Log: srv.log})
	return err
}

// isAlive tells whether a node is among those that share the database.
func (srv *Server) isAlive(ctx context.Context, id string) (bool, error) {
	list, err := node.List(ctx, srv.store)
	return slices.ContainsFunc(list, func(i node.Info) bool { return i.ID == id && i.State != "silent" }), err
}

// hubNodes carry clients' messages to the nodes they are about.
func (srv *Server) hubNodes() hub.Nodes {
	if srv.remoteCalls == nil {
		return nil // not a typed nil
	}
	return srv.remoteCalls
}

// sessionStore is the book of clients' sessions as the hub sees it.
type sessionStore struct{ *sessionstore.Store }

func (v sessionStore) Save(ctx context.Context, id string, one hub.SessionState) error {
	return v.Store.Save(ctx, id, sessionstore.Session{Namespace: one.Namespace, Owner: one.Owner, Version: one.Version, Caps: one.Caps, Level: one.Level})
}

func (v sessionStore) Find(ctx context.Context, id string) (hub.SessionState, bool, error) {
	one, ok, err := v.Store.Find(ctx, id)
	return hub.SessionState{Namespace: one.Namespace, Owner: one.Owner, Version: one.Version, Caps: one.Caps, Level: one.Level}, ok, err
}

// nodeID is this server among those that share the database; "" when it is alone.
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

// runNode begins to live among the others: to be heard of, to hear, and to go on
// WithLive what dead ones leave.
func (srv *Server) runNode(ctx context.Context) {
	if srv.node == nil {
		return
	}
	var estates []node.Work
	if srv.conversations != nil {
		estates = append(estates, srv.conversations)
		srv.listenTopic(ctx, conversationTopic, srv.conversations.Receive)
	}
	if srv.jobs != nil && srv.jobNode() != "" {
		estates = append(estates, srv.jobs)
	}
	if srv.isShared() {
		estates = append(estates, srv.scripts.sessions)
		srv.listenTopic(ctx, script.Topic, func(string) {
			if err := srv.scripts.published.Reload(ctx); err != nil && ctx.Err() == nil {
				srv.log.WarnContext(ctx, "scripts of other nodes not taken over", "error", err)
			}
		})
		srv.background.Go(func() { srv.sessions.RunCleanup(ctx) })
		srv.background.Go(func() { srv.remoteCalls.Serve(ctx, srv.hub.HandleRemote) })
		srv.node.SetWatching(srv.dashboard.HasReaders)
		srv.relay = eventrelay.New(eventrelay.Options{Bus: srv.bus, Store: srv.store, Node: srv.node, NodeID: srv.node.ID, Log: srv.log})
		srv.background.Go(func() { srv.relay.Run(ctx) })
	}
	srv.node.Run(ctx, estates...)
}

// notifier is a way to say something to all nodes that hear a topic.
func (srv *Server) notifier(topic string) func(context.Context, string) {
	if !srv.isShared() {
		return nil
	}
	return func(ctx context.Context, word string) {
		if err := srv.store.Notify(ctx, topic, word); err != nil {
			srv.log.WarnContext(ctx, "other nodes not told", "topic", topic, "error", err)
		}
	}
}

// listenTopic has f called with what nodes say on a topic, or "" when something may have
// been missed.
func (srv *Server) listenTopic(ctx context.Context, topic string, f func(word string)) {
	if !srv.isShared() {
		return
	}
	srv.background.Go(func() {
		_ = srv.store.Listen(ctx, topic, func(news db.Notification) { f(news.Payload) }) // it ends with the server
	})
}

// announceAddress tells the others where we are.
func (srv *Server) announceAddress(address string) {
	if srv.node != nil {
		srv.node.SetAddress(address)
	}
}

// announceDrain tells the others that we are about to go.
func (srv *Server) announceDrain(ctx context.Context) {
	if srv.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := srv.node.Drain(ctx); err != nil {
		srv.log.WarnContext(ctx, "other nodes not told that this one leaves", "error", err)
	}
}

// announceWatching tells the others that somebody here looks on, so that they tell all
// that happens.
func (srv *Server) announceWatching(ctx context.Context) {
	if srv.node == nil || !srv.isShared() {
		return
	}
	if err := srv.node.Announce(ctx); err != nil && ctx.Err() == nil {
		srv.log.WarnContext(ctx, "other nodes not told that somebody looks on", "error", err)
	}
}

// nodeName is the name of this node; "" if the server is not a node.
func (srv *Server) nodeName() string {
	if srv.node == nil {
		return ""
	}
	return srv.node.Name()
}
