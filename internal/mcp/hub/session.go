package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// session is a client of the sessions era, or a connection with a single stream for
// everything (stdio, HTTP+SSE).
type session struct {
	id       string // a secret of the client
	name     string // identifies it in logs and audit entries
	who      string
	created  time.Time
	ep       *endpoint
	agent    string                   // the client, as it calls itself
	viewer   atomic.Pointer[audience] // whose it is, without the menu
	menu     string                   // the list of tools that the client asked for, or empty
	shared   bool                     // main is the only stream and carries answers too
	loaded   bool                     // it was opened on another node
	main     *stream                  // messages that belong to no request
	ended    chan struct{}            // closed when the session ends
	level    atomic.Int32             // the least severe log messages that the client wants
	ready    atomic.Bool              // the client has sent notifications/initialized
	lastUsed atomic.Int64             // in Unix nanoseconds
	readers  atomic.Int32             // connections that read its streams

	mu            sync.Mutex
	version       string          // negotiated; empty before initialize
	caps          json.RawMessage // the client's
	calls         map[wire.ID]*request
	questions     map[wire.ID]chan wire.Message
	lastQuestion  int64
	streams       []*stream // of requests, oldest first, for clients that reconnect
	streamCount   int       // number of streams made
	subscriptions map[string]func()
	updates       map[string]bool // resources of whose change another node is being told; true: it changed again
	tasks         map[string]bool // that the client is notified of; nil: none
	isEnded       bool
}

// maxStoredStreams is how many streams of requests a session stores for replay.
const maxStoredStreams = 32

// mainStream is the name of a session's own stream in event ids.
const mainStream = "main"

func newSession(ctx context.Context, ep *endpoint, who string, shared bool) *session {
	name := mainStream
	if shared {
		name = ""
	}
	s := &session{
		who:           who,
		created:       time.Now(),
		ep:            ep,
		shared:        shared,
		main:          newStream(name),
		ended:         make(chan struct{}),
		calls:         map[wire.ID]*request{},
		questions:     map[wire.ID]chan wire.Message{},
		subscriptions: map[string]func(){},
		updates:       map[string]bool{},
	}
	s.setID(rand.Text()) // 130 bits
	s.identify(ctx)
	s.level.Store(int32(levelInfo))
	s.touch(time.Now())
	return s
}

// setID sets the id of a session that is not in use yet.
func (s *session) setID(id string) {
	sum := sha256.Sum256([]byte(id))
	s.id, s.name = id, "session:"+hex.EncodeToString(sum[:6])
}

func (s *session) touch(now time.Time) { s.lastUsed.Store(now.UnixNano()) }

// idleSince tells whether the session was not used after a time.
func (s *session) idleSince(then time.Time) bool {
	return !s.busy() && s.lastUsed.Load() < then.UnixNano()
}

// busy tells whether the client reads a stream or waits for an answer.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0 || s.readers.Load() > 0
}

// initialize sets what was negotiated.
func (s *session) initialize(version string, caps json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.caps = version, caps
}

// display is how the client wants its lists.
func (s *session) display() display {
	_, caps := s.negotiated()
	return display{s.menu, apps.Declared(caps)}
}

func (s *session) negotiated() (version string, caps json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.caps
}

// newResponse makes the response to a request: on the session's only stream, or on a
// stream of its own that the client can resume.
func (s *session) newResponse(id wire.ID) *response {
	if s.shared {
		return newSharedResponse(id, s.main)
	}
	s.mu.Lock()
	s.streamCount++
	name := strconv.Itoa(s.streamCount)
	s.mu.Unlock()
	return newResponse(id, name)
}

// begin registers a request, unless its id is in use.
func (s *session) begin(id wire.ID, req *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isEnded {
		return errSessionEnded
	}
	if _, taken := s.calls[id]; taken {
		return wire.Errorf(wire.CodeInvalidRequest, "a request with the id %s is still running", id)
	}
	s.calls[id] = req
	return nil
}

func (s *session) finish(id wire.ID) {
	s.mu.Lock()
	delete(s.calls, id)
	s.mu.Unlock()
	s.touch(time.Now())
}

// cancel cancels a request and tells whether it exists.
func (s *session) cancel(id wire.ID) bool {
	s.mu.Lock()
	req := s.calls[id]
	s.mu.Unlock()
	if req != nil {
		req.cancel(errCancelled)
	}
	return req != nil
}

// expectAnswer makes an id for a request of the hub and a channel for its answer.
func (s *session) expectAnswer() (wire.ID, <-chan wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastQuestion++
	id := wire.IntID(s.lastQuestion)
	if nodes := s.ep.hub.opts.Nodes; nodes != nil { // other nodes may send requests in the same session
		id = wire.TextID(nodes.Self() + "-" + string(id))
	}
	reply := make(chan wire.Message, 1)
	s.questions[id] = reply
	return id, reply
}

// deliver passes a client's response to the request that waits for it, and tells whether
// there is one.
func (s *session) deliver(m wire.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, ok := s.questions[m.ID]
	if ok {
		delete(s.questions, m.ID)
		reply <- m // it is buffered, and there is only one answer
	}
	return ok
}

// store stores the stream of a request, so that its client can reconnect.
func (s *session) store(out *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, out)
	if len(s.streams) > maxStoredStreams {
		s.streams = s.streams[1:]
	}
}

// find is the stream of a name, or nil.
func (s *session) find(name string) *stream {
	if name == s.main.name {
		return s.main
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, out := range s.streams {
		if out.name == name {
			return out
		}
	}
	return nil
}

// subscribe subscribes the client to a resource; stop is called once when that ends. It
// returns false if the client is subscribed already.
func (s *session) subscribe(uri string, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.subscriptions[uri]; twice || s.isEnded {
		return false
	}
	s.subscriptions[uri] = stop
	return true
}

// unsubscribe tells whether the client was subscribed here.
func (s *session) unsubscribe(uri string) bool {
	s.mu.Lock()
	stop, ok := s.subscriptions[uri]
	delete(s.subscriptions, uri)
	s.mu.Unlock()
	if ok {
		stop()
	}
	return ok
}

func (s *session) isSubscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscriptions[uri]
	return ok
}

// beginUpdate tells whether another node is to be told that a resource has changed: not while
// it is told of an earlier change.
func (s *session) beginUpdate(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, told := s.updates[uri]
	s.updates[uri] = told
	return !told
}

// endUpdate tells whether the resource has changed since beginUpdate.
func (s *session) endUpdate(uri string) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = s.updates[uri]
	delete(s.updates, uri)
	return again
}

// end ends the session with its streams, requests and subscriptions.
func (s *session) end(ctx context.Context) {
	s.mu.Lock()
	if s.isEnded {
		s.mu.Unlock()
		return
	}
	s.isEnded = true
	watched, streams, version := s.subscriptions, s.streams, s.version
	s.subscriptions, s.streams = nil, nil
	s.mu.Unlock()
	close(s.ended)
	s.ep.hub.metrics.session.Record(ctx, sessionKind{version}, time.Since(s.created))
	s.ep.hub.cancelRequests(errSessionEnded, func(req *request) bool { return req.session == s })
	for _, stop := range watched {
		stop()
	}
	for _, out := range streams {
		out.end()
	}
	s.main.end()
}

// sessions are those of one endpoint.
type sessions struct {
	max int

	mu   sync.Mutex
	byID map[string]*session
}

// add adds a session. At the limit it ends the session that was unused for longest; if all
// are in use, it refuses the new one.
func (all *sessions) add(ctx context.Context, s *session) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byID) >= all.max && !all.evict(ctx) {
		return fault.New(fault.Limit, "%d sessions are open already", all.max).
			WithHint("close sessions you no longer need, or try again later")
	}
	all.byID[s.id] = s
	return nil
}

func (all *sessions) evict(ctx context.Context) bool {
	var oldest *session
	now := time.Now()
	for _, s := range all.byID {
		if s.idleSince(now) && (oldest == nil || s.lastUsed.Load() < oldest.lastUsed.Load()) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(all.byID, oldest.id)
	oldest.end(ctx)
	return true
}

// find is the session with an id if it belongs to who, otherwise nil.
func (all *sessions) find(id, who string) *session {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.byID[id]
	if s == nil || s.who != who {
		return nil
	}
	s.touch(time.Now())
	return s
}

// remove ends a session.
func (all *sessions) remove(ctx context.Context, s *session) {
	all.mu.Lock()
	delete(all.byID, s.id)
	all.mu.Unlock()
	s.end(ctx)
}

// expire ends the sessions that were not used after a time.
func (all *sessions) expire(ctx context.Context, then time.Time) {
	for _, s := range all.list() {
		if s.idleSince(then) {
			all.remove(ctx, s)
		}
	}
}

func (all *sessions) list() []*session {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := make([]*session, 0, len(all.byID))
	for _, s := range all.byID {
		list = append(list, s)
	}
	return list
}

func (all *sessions) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byID)
}

// endStreams ends the streams of messages that belong to no request.
func (all *sessions) endStreams() {
	for _, s := range all.list() {
		if !s.shared {
			s.main.end()
		}
	}
}

// SessionState is what other nodes need to serve a session.
type SessionState struct {
	Namespace string          // the upstream's namespace, or ""
	Owner     string          // the principal
	Version   string          // of the protocol
	Caps      json.RawMessage // the client's
	Level     string          // of the log messages it wants
	Menu      string          // the list of tools that it asked for
	Agent     string          // the client, as it calls itself
}

// SessionStore stores sessions for all nodes.
type SessionStore interface {
	Save(ctx context.Context, id string, v SessionState) error
	Find(ctx context.Context, id string) (v SessionState, ok bool, err error)
	Delete(ctx context.Context, id string) error
}

// saveSession stores a session for other nodes. After an error it can be used on this node
// only.
func (e *endpoint) saveSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil || s.shared {
		return
	}
	version, caps := s.negotiated()
	v := SessionState{Namespace: e.name, Owner: s.who, Version: version, Caps: caps, Level: levels[s.level.Load()], Menu: s.menu, Agent: s.agent}
	if err := e.hub.opts.SessionStore.Save(ctx, s.id, v); err != nil {
		e.hub.log.WarnContext(ctx, "cannot store session for other nodes", "error", err)
	}
}

// loadSession loads a session that was opened on another node. It returns nil if there is
// none with that id, or if it belongs to another principal.
func (e *endpoint) loadSession(ctx context.Context, id, who string) (*session, error) {
	if e.hub.opts.SessionStore == nil {
		return nil, nil // there is none
	}
	v, ok, err := e.hub.opts.SessionStore.Find(ctx, id)
	if err != nil || !ok || v.Namespace != e.name || v.Owner != who {
		return nil, err
	}
	for _, kind := range listChanges {
		e.backend.recordList(display{v.Menu, apps.Declared(v.Caps)}.in(ctx), kind)
	}
	s := newSession(ctx, e, who, false)
	s.setID(id)
	s.loaded, s.menu, s.agent = true, v.Menu, v.Agent
	s.initialize(v.Version, v.Caps)
	s.ready.Store(true)
	if want, ok := parseLevel(v.Level); ok {
		s.level.Store(int32(want))
		_ = e.lowerLevel(ctx, want) // without log messages the session can still be used
	}
	return e.sessions.addLoaded(ctx, s), nil
}

// addLoaded adds a loaded session, unless another request has done so meanwhile.
func (all *sessions) addLoaded(ctx context.Context, s *session) *session {
	all.mu.Lock()
	before := all.byID[s.id]
	all.mu.Unlock()
	if before != nil && before.who == s.who {
		return before
	}
	if err := all.add(ctx, s); err != nil {
		return nil
	}
	return s
}

// deleteSession removes a session from the store.
func (e *endpoint) deleteSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil {
		return
	}
	if err := e.hub.opts.SessionStore.Delete(ctx, s.id); err != nil {
		e.hub.log.WarnContext(ctx, "cannot remove session from the store", "error", err)
	}
}

// eventsOfOtherNode tells whether an event id belongs to the session's stream on another
// node. The stream on this node then starts from its beginning.
func (s *session) eventsOfOtherNode(last string) bool {
	name, number, ok := parseEventID(last)
	return s.loaded && ok && name == mainStream && number > s.main.position()
}

var _ tool.Client = (*session)(nil)

// Ended implements tool.Client.
func (s *session) Ended() <-chan struct{} { return s.ended }

// Connected implements tool.Client: the client reads a stream.
func (s *session) Connected() bool { return s.readers.Load() > 0 }

// Roots implements tool.Client: it asks the client on the stream for messages that belong
// to no request.
func (s *session) Roots(ctx context.Context) (json.RawMessage, error) {
	_, caps := s.negotiated()
	question := tool.Question{Method: wire.MethodRoots}
	if err := checkDeclared(caps, []tool.Question{question}); err != nil {
		return nil, err
	}
	if !s.Connected() {
		return nil, fault.New(fault.Unavailable, "ask the client: it reads no stream")
	}
	return s.ask(ctx, func(m wire.Message, _ bool) bool { s.main.send(m.Append(nil)); return true }, question)
}
