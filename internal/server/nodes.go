package server

import (
	"cmp"
	"context"
	"time"

	"github.com/luanette/luanette/internal/cluster/eventrelay"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/store/db"
)

// nodeTimeout is how long a node that lost its connection to Postgres must be silent
// before other nodes take over its work.
const nodeTimeout = 3 * time.Second

// conversationTopic notifies nodes of answered messages.
const conversationTopic = "talk"

// isShared tells whether several machines may use the database.
func (srv *Server) isShared() bool { return srv.store != nil && srv.store.Kind() == db.Postgres }

// Intervals at which changes of other processes are looked for. Nodes on Postgres are
// notified of them, processes that share a SQLite file are not.
const (
	pollShared = 30 * time.Second
	pollAlone  = 2 * time.Second
)

// poll calls look whenever another process may have changed what a topic is about, until
// ctx ends.
func (srv *Server) poll(ctx context.Context, topic string, look func(context.Context) error) {
	every := pollAlone
	if srv.isShared() {
		every = cmp.Or(srv.options.pollInterval, pollShared)
	}
	srv.store.Poll(ctx, topic, every, srv.log, look)
}

// joinNodes registers the server as a node of its database. A command that builds a
// server for one call on a SQLite file is no node.
func (srv *Server) joinNodes(ctx context.Context) (err error) {
	if !srv.options.Jobs && !srv.isShared() {
		return nil
	}
	options := node.Options{Name: srv.config.NodeName(), Version: srv.options.Version, Load: srv.load, Events: srv.bus, Log: srv.log}
	if srv.isShared() {
		options.Silence = nodeTimeout
		options.Only = srv.options.Jobs && srv.config.Node != "" // a configured name must be unique
	}
	if srv.node, err = node.Join(ctx, srv.store, options); err != nil {
		return err
	}
	if srv.tasks, err = taskrelay.Open(ctx, srv.store, taskrelay.Options{Node: srv.nodeID(), Log: srv.log}); err != nil || !srv.isShared() {
		return err
	}
	if srv.sessions, err = sessionstore.Open(ctx, srv.store, time.Duration(srv.config.MCP.SessionIdle)); err != nil {
		return err
	}
	srv.sessionStore = srv.sessions
	srv.remoteCalls, err = remotecall.Open(ctx, srv.store, remotecall.Options{Self: srv.nodeID(), Alive: node.IsAlive(srv.store), Log: srv.log})
	return err
}

// hubNodes passes clients' messages on to the node that has their request.
func (srv *Server) hubNodes() hub.Nodes {
	if srv.remoteCalls == nil {
		return nil // not a typed nil
	}
	return srv.remoteCalls
}

// nodeID identifies this node; "" if the server is not a node.
func (srv *Server) nodeID() string {
	if srv.node == nil {
		return ""
	}
	return srv.node.ID
}

// jobNode is the node id for jobs: "" on a SQLite file, whose jobs one process runs.
func (srv *Server) jobNode() string {
	if !srv.isShared() {
		return ""
	}
	return srv.nodeID()
}

// runNode sends heartbeats, receives notifications and takes over the work of dead nodes.
func (srv *Server) runNode(ctx context.Context) {
	if srv.node == nil {
		return
	}
	work := []node.Work{srv.tasks}
	if srv.conversations != nil {
		work = append(work, srv.conversations)
		srv.listenTopic(ctx, conversationTopic, srv.conversations.Receive)
	}
	if srv.jobs != nil && srv.jobNode() != "" {
		work = append(work, srv.jobs)
	}
	if srv.isShared() {
		work = append(work, srv.scripts.sessions)
		srv.listenTopic(ctx, publish.Topic, func(string) {
			if err := srv.scripts.published.Reload(ctx); err != nil && ctx.Err() == nil {
				srv.log.WarnContext(ctx, "scripts of other nodes not loaded", "error", err)
			}
		})
		srv.background.Go(func() { srv.sessions.RunCleanup(ctx) })
		srv.background.Go(func() { srv.remoteCalls.Serve(ctx, srv.hub.HandleRemote) })
		srv.node.SetWatching(srv.dashboard.HasReaders)
		srv.relay = eventrelay.New(eventrelay.Options{Bus: srv.bus, Store: srv.store, Node: srv.node, NodeID: srv.node.ID, Log: srv.log})
		srv.background.Go(func() { srv.relay.Run(ctx) })
	}
	srv.node.Run(ctx, work...)
}

// notifier returns a function that notifies all nodes on a topic.
func (srv *Server) notifier(topic string) func(context.Context, string) {
	if !srv.isShared() {
		return nil
	}
	return func(ctx context.Context, payload string) {
		if err := srv.store.Notify(ctx, topic, payload); err != nil {
			srv.log.WarnContext(ctx, "other nodes not notified", "topic", topic, "error", err)
		}
	}
}

// listenTopic calls f with each notification on a topic, or with "" when one may have been
// missed.
func (srv *Server) listenTopic(ctx context.Context, topic string, f func(payload string)) {
	if !srv.isShared() {
		return
	}
	srv.background.Go(func() {
		_ = srv.store.Listen(ctx, topic, func(n db.Notification) { f(n.Payload) }) // it ends with the server
	})
}

// announceReader asks the other nodes to relay all events, because this node has a
// reader.
func (srv *Server) announceReader() {
	if srv.isShared() {
		srv.runBackground(srv.node.Announce)
	}
}
