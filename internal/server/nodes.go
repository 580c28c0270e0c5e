package server

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/cluster/eventrelay"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/cluster/remotecall"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// nodeTimeout is how long a node that lost its connection to Postgres must be silent
// before other nodes take over its work.
const nodeTimeout = 3 * time.Second

// conversationTopic notifies nodes of answered messages.
const conversationTopic = "talk"

// cluster connects the nodes on one database.
type cluster struct {
	node         *node.Node          // nil if the server is not a node
	sessions     *sessionstore.Store // nil unless nodes share the database, like the following
	sessionStore hub.SessionStore
	remoteCalls  *remotecall.Service
	tasks        *taskrelay.Relay // nil if the server is not a node
	relay        *eventrelay.Relay
	callRate     node.RateMeter
}

// isShared tells whether several machines may use the database.
func (p *process) isShared() bool { return p.store.Kind() == db.Postgres }

// Intervals at which changes of other processes are looked for. Nodes on Postgres are
// notified of them, processes that share a SQLite file are not.
const (
	pollShared = 30 * time.Second
	pollAlone  = time.Second
)

// poll calls look whenever another process may have changed what a topic is about, until
// ctx ends.
func (p *process) poll(ctx context.Context, topic string, look func(context.Context) error) {
	every := pollAlone
	if p.isShared() {
		every = cmp.Or(p.options.pollInterval, pollShared)
	}
	p.store.Poll(ctx, topic, every, p.log, look)
}

// joinNodes registers the server as a node of its database. A command that builds a
// server for one call on a SQLite file is no node.
func joinNodes(ctx context.Context, p *process) (c *cluster, err error) {
	c = &cluster{}
	if !p.options.Jobs && !p.isShared() {
		return c, nil
	}
	options := node.Options{Name: p.config.NodeName(), Version: p.options.Version, Events: p.bus, Log: p.log}
	if p.isShared() {
		options.Silence = nodeTimeout
		options.Only = p.options.Jobs && p.config.Node != "" // a configured name must be unique
	}
	if c.node, err = node.Join(ctx, p.store, options); err != nil {
		return nil, err
	}
	p.closeLast.within("the place among the nodes", storeTimeout, c.node.Leave)
	if c.tasks, err = taskrelay.Open(ctx, p.store, taskrelay.Options{Node: c.node.ID, Log: p.log}); err != nil || !p.isShared() {
		return c, err
	}
	if c.sessions, err = sessionstore.Open(ctx, p.store, time.Duration(p.config.MCP.SessionIdle)); err != nil {
		return nil, err
	}
	c.sessionStore = c.sessions
	c.remoteCalls, err = remotecall.Open(ctx, p.store, remotecall.Options{Self: c.node.ID, Alive: node.IsAlive(p.store), Log: p.log})
	return c, err
}

// hubNodes passes clients' messages on to the node that has their request.
func (c *cluster) hubNodes() hub.Nodes {
	if c.remoteCalls == nil {
		return nil // not a typed nil
	}
	return c.remoteCalls
}

// nodeID identifies this node; "" if the server is not a node.
func (c *cluster) nodeID() string {
	if c.node == nil {
		return ""
	}
	return c.node.ID
}

// jobNode is the node id for jobs: "" on a SQLite file, whose jobs one process runs.
func (p *process) jobNode() string {
	if !p.isShared() {
		return ""
	}
	return p.nodeID()
}

// runNode sends heartbeats, receives notifications and takes over the work of dead nodes.
func (srv *Server) runNode(ctx context.Context) {
	if srv.node == nil {
		return
	}
	srv.node.SetLoad(srv.load) // the load of the endpoints, which need the node
	work := []node.Work{srv.tasks}
	if srv.turns != nil {
		work = append(work, srv.turns)
		srv.listenTopic(conversationTopic, srv.turns.Receive)
	}
	if srv.jobs != nil && srv.jobNode() != "" {
		work = append(work, srv.jobs)
	}
	if srv.isShared() {
		work = append(work, srv.scripts.sessions)
		srv.runBackground(srv.sessions.RunCleanup)
		srv.runBackground(func(ctx context.Context) { srv.remoteCalls.Serve(ctx, srv.hub.HandleRemote) })
		srv.node.SetWatching(srv.dashboard.HasReaders)
		srv.relay = eventrelay.New(eventrelay.Options{Bus: srv.bus, Store: srv.store, Node: srv.node, NodeID: srv.node.ID, Log: srv.log})
		srv.runBackground(srv.relay.Run)
	}
	srv.node.Run(ctx, work...)
}

// notifier returns a function that notifies all nodes on a topic.
func (p *process) notifier(topic string) func(context.Context, string) {
	if !p.isShared() {
		return nil
	}
	return func(ctx context.Context, payload string) {
		if err := p.store.Notify(ctx, topic, payload); err != nil {
			p.log.WarnContext(ctx, "other nodes not notified", "topic", topic, "error", err)
		}
	}
}

// listenTopic calls f with each notification on a topic, or with "" when one may have been
// missed.
func (p *process) listenTopic(topic string, f func(payload string)) {
	if !p.isShared() {
		return
	}
	p.runBackground(func(ctx context.Context) {
		_ = p.store.Listen(ctx, topic, func(n db.Notification) { f(n.Payload) }) // it ends with the server
	})
}

// announceReader asks the other nodes to relay all events, because this node has a
// reader.
func (p *process) announceReader() {
	if p.isShared() {
		p.runBackground(p.node.Announce)
	}
}

// load reports how much this node has to do.
func (srv *Server) load() json.RawMessage {
	now := node.Load{Sessions: srv.hub.Sessions(), Streams: srv.dashboard.Readers()}
	now.AddProcess()
	var calls uint64
	for _, namespace := range append(srv.upstreams.Manager.Namespaces(), "") {
		if stats, ok := srv.catalog.Stats(context.Background(), namespace); ok { // from memory
			calls += stats.Calls
			now.InFlight += stats.InFlight
		}
	}
	now.CallsPerMinute = srv.callRate.LastMinute(time.Now(), calls)
	if srv.jobs != nil {
		now.Jobs = srv.jobs.Running()
	}
	raw, _ := json.Marshal(now) // it always encodes
	return raw
}

// nodes lists the nodes that share the database.
func (srv *Server) nodes(ctx context.Context) (adminapi.Nodes, error) {
	list, err := node.List(ctx, srv.store)
	for i := range list {
		if list[i].ID == srv.nodeID() {
			list[i].Load = srv.load() //nolint:contextcheck // it only looks at memory
		}
	}
	return adminapi.Nodes{Node: srv.nodeID(), Nodes: list}, err
}
