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

	"github.com/luanette/luanette/internal/mcp/wire"
)

// session is what the hub remembers of one client of the older era, or of one
// connection that carries everything on a single channel (stdio, HTTP+SSE).
type session struct {
	id      string // the client's key to it, never shown
	name    string // tells it apart where others can see it
	who     string
	born    time.Time
	ep      *endpoint
	shared  bool          // main carries answers too
	adopted bool          // another node began it
	main    *stream       // what is not part of a call's own stream
	gone    chan struct{} // closed when the session ends
	level   atomic.Int32  // the least important log messages wanted
	ready   atomic.Bool   // the client said it is initialized
	seen    atomic.Int64  // when it was last heard of, in Unix nanoseconds
	readers atomic.Int32  // connections that read its streams now

	mu      sync.Mutex
	version string          // negotiated; empty before initialize
	caps    json.RawMessage // the client's
	calls   map[wire.ID]*task
	asked   map[wire.ID]chan wire.Message
	lastAsk int64
	streams []*stream // of calls, oldest first, kept for clients that reconnect
	made    int       // streams made so far
	watched map[string]func()
	ended   bool
}

// keptStreams is how many calls' streams a session keeps for replay.
const keptStreams = 32

// mainStream is the name of a session's own stream in event ids.
const mainStream = "main"

func newSession(ep *endpoint, who string, shared bool) *session {
	name := mainStream
	if shared {
		name = ""
	}
	s := &session{
		who:     who,
		born:    time.Now(),
		ep:      ep,
		shared:  shared,
		main:    newStream(name),
		gone:    make(chan struct{}),
		calls:   map[wire.ID]*task{},
		asked:   map[wire.ID]chan wire.Message{},
		watched: map[string]func(){},
	}
	s.setID(rand.Text()) // 130 bits
	s.level.Store(int32(levelInfo))
	s.touch(time.Now())
	return s
}

// setID names a session that nobody knows yet.
func (s *session) setID(id string) {
	sum := sha256.Sum256([]byte(id))
	s.id, s.name = id, "session:"+hex.EncodeToString(sum[:6])
}

func (s *session) touch(now time.Time) { s.seen.Store(now.UnixNano()) }

// idleSince tells whether nobody used the session after then.
func (s *session) idleSince(then time.Time) bool {
	return !s.busy() && s.seen.Load() < then.UnixNano()
}

// busy tells whether the client reads from us or waits for an answer.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0 || s.readers.Load() > 0
}

// initialize notes what the client said of itself.
func (s *session) initialize(version string, caps json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.caps = version, caps
}

func (s *session) negotiated() (version string, caps json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.caps
}

// round makes the place for a request's answer: the session's channel where it
// has only one, else a stream that the client can come back to.
func (s *session) round(id wire.ID) *round {
	if s.shared {
		return sharedRound(id, s.main)
	}
	s.mu.Lock()
	s.made++
	name := strconv.Itoa(s.made)
	s.mu.Unlock()
	return newRound(id, name)
}

// began notes a request in flight, unless its id is in use.
func (s *session) began(id wire.ID, t *task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	if _, taken := s.calls[id]; taken {
		return wire.Errorf(wire.CodeInvalidRequest, "a request with the id %s is still running", id)
	}
	s.calls[id] = t
	return nil
}

func (s *session) finished(id wire.ID) {
	s.mu.Lock()
	delete(s.calls, id)
	s.mu.Unlock()
	s.touch(time.Now())
}

// cancel calls off the request a client named; unknown ones are ignored.
func (s *session) cancel(id wire.ID) bool {
	s.mu.Lock()
	t := s.calls[id]
	s.mu.Unlock()
	if t != nil {
		t.cancel(errCancelled)
	}
	return t != nil
}

// expect makes an id for a request of ours and the place where its answer comes.
func (s *session) expect() (wire.ID, <-chan wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAsk++
	id := wire.IntID(s.lastAsk)
	if nodes := s.ep.hub.opts.Nodes; nodes != nil { // others may ask in the same session
		id = wire.TextID(nodes.Self() + "-" + string(id))
	}
	reply := make(chan wire.Message, 1)
	s.asked[id] = reply
	return id, reply
}

func (s *session) unexpect(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

// deliver hands a client's response to whoever asked. One that nobody waits for
// any more is dropped: the client could not know.
func (s *session) deliver(m wire.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, ok := s.asked[m.ID]
	if ok {
		delete(s.asked, m.ID)
		reply <- m // holds one, and only one comes
	}
	return ok
}

// keep remembers a call's stream, so that its client may reconnect.
func (s *session) keep(out *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, out)
	if len(s.streams) > keptStreams {
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

// watch notes a resource the client wants to hear of; stop is called once when
// it does not any more. False when it was watched already.
func (s *session) watch(uri string, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.watched[uri]; twice || s.ended {
		return false
	}
	s.watched[uri] = stop
	return true
}

func (s *session) unwatch(uri string) {
	s.mu.Lock()
	stop := s.watched[uri]
	delete(s.watched, uri)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *session) watches(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.watched[uri]
	return ok
}

// end ends the session: its streams, the calls in flight, its subscriptions.
func (s *session) end(ctx context.Context) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	watched, streams := s.watched, s.streams
	s.watched, s.streams = nil, nil
	s.mu.Unlock()
	close(s.gone)
	s.ep.hub.metrics.session.Record(ctx, time.Since(s.born).Seconds())
	s.ep.hub.cancelTasks(errEnded, func(t *task) bool { return t.session == s })
	for _, stop := range watched {
		stop()
	}
	for _, out := range streams {
		out.end()
	}
	s.main.end()
}
