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
	id       string // the client's key to it, never shown
	name     string // tells it apart where others can see it
	who      string
	created  time.Time
	ep       *endpoint
	shared   bool          // main carries answers too
	loaded   bool          // another node began it
	main     *stream       // what is not part of a call's own stream
	ended    chan struct{} // closed when the session ends
	level    atomic.Int32  // the least important log messages wanted
	ready    atomic.Bool   // the client said it is initialized
	lastUsed atomic.Int64  // when it was last heard of, in Unix nanoseconds
	readers  atomic.Int32  // connections that read its streams now

	mu            sync.Mutex
	version       string          // negotiated; empty before initialize
	caps          json.RawMessage // the client's
	calls         map[wire.ID]*request
	questions     map[wire.ID]chan wire.Message
	lastQuestion  int64
	streams       []*stream // of calls, oldest first, kept for clients that reconnect
	streamCount   int       // streams made so far
	subscriptions map[string]func()
	isEnded       bool
}

// maxStoredStreams is how many calls' streams a session keeps for replay.
const maxStoredStreams = 32

// mainStream is the name of a session's own stream in event ids.
const mainStream = "main"

func newSession(ep *endpoint, who string, shared bool) *session {
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

func (s *session) touch(now time.Time) { s.lastUsed.Store(now.UnixNano()) }

// idleSince tells whether nobody used the session after then.
func (s *session) idleSince(then time.Time) bool {
	return !s.busy() && s.lastUsed.Load() < then.UnixNano()
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

// newResponse makes the place for a request's answer: the session's channel where it
// has only one, else a stream that the client can come back to.
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

// begin notes a request in flight, unless its id is in use.
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

// cancel calls off the request a client named; unknown ones are ignored.
func (s *session) cancel(id wire.ID) bool {
	s.mu.Lock()
	req := s.calls[id]
	s.mu.Unlock()
	if req != nil {
		req.cancel(errCancelled)
	}
	return req != nil
}

// expectAnswer makes an id for a request of ours and the place where its answer comes.
func (s *session) expectAnswer() (wire.ID, <-chan wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastQuestion++
	id := wire.IntID(s.lastQuestion)
	if nodes := s.ep.hub.opts.Nodes; nodes != nil { // others may ask in the same session
		id = wire.TextID(nodes.Self() + "-" + string(id))
	}
	reply := make(chan wire.Message, 1)
	s.questions[id] = reply
	return id, reply
}

func (s *session) cancelAnswer(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, id)
}

// deliver hands a client's response to whoever asked. One that nobody waits for
// any more is dropped: the client could not know.
func (s *session) deliver(m wire.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, ok := s.questions[m.ID]
	if ok {
		delete(s.questions, m.ID)
		reply <- m // holds one, and only one comes
	}
	return ok
}

// store remembers a call's stream, so that its client may reconnect.
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

// subscribe notes a resource the client wants to hear of; stop is called once when
// it does not any more. False when it was watched already.
func (s *session) subscribe(uri string, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.subscriptions[uri]; twice || s.isEnded {
		return false
	}
	s.subscriptions[uri] = stop
	return true
}

func (s *session) unsubscribe(uri string) {
	s.mu.Lock()
	stop := s.subscriptions[uri]
	delete(s.subscriptions, uri)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *session) isSubscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscriptions[uri]
	return ok
}

// end ends the session: its streams, the calls in flight, its subscriptions.
func (s *session) end(ctx context.Context) {
	s.mu.Lock()
	if s.isEnded {
		s.mu.Unlock()
		return
	}
	s.isEnded = true
	watched, streams := s.subscriptions, s.streams
	s.subscriptions, s.streams = nil, nil
	s.mu.Unlock()
	close(s.ended)
	s.ep.hub.metrics.session.Record(ctx, time.Since(s.created).Seconds())
	s.ep.hub.cancelRequests(errSessionEnded, func(req *request) bool { return req.session == s })
	for _, stop := range watched {
		stop()
	}
	for _, out := range streams {
		out.end()
	}
	s.main.end()
}
