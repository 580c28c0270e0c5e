package zmtp

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// pattern is the behaviour of one kind of socket.
type pattern interface {
	// join adds a link to the peers, or refuses it.
	join(l *link) error
	// send sends a message of at least one frame.
	send(ctx context.Context, m Message) error
	// receive handles a message from a peer, waiting for space in the queue until
	// ctx ends. An error disconnects the peer.
	receive(ctx context.Context, l *link, m Message) error
	// subscribe handles a peer's subscription or, if want is false, its end. An
	// error disconnects the peer.
	subscribe(l *link, topic []byte, want bool) error
}

func newPattern(s *Socket) pattern {
	switch s.kind {
	case Router:
		return router{s}
	case Pub:
		return pub{s}
	case Sub:
		return sub{s}
	default:
		return dealer{s}
	}
}

// dealer sends to the one peer that it dialed.
type dealer struct{ *Socket }

func (d dealer) join(l *link) error {
	d.peers.add(l)
	return nil
}

// send queues the message, waiting for a connection and for space in its queue.
func (d dealer) send(ctx context.Context, m Message) error {
	for {
		if err := d.peers.wait(ctx, d.done); err != nil {
			return err
		}
		for _, l := range d.peers.all() {
			if err := l.out.put(ctx, m); !errors.Is(err, errQueueClosed) {
				return err
			}
		}
	}
}

func (d dealer) receive(ctx context.Context, _ *link, m Message) error { return d.in.put(ctx, m) }
func (dealer) subscribe(*link, []byte, bool) error                     { return nil }

// router sends to the peer whose identity is the message's first frame.
type router struct{ *Socket }

func (r router) join(l *link) error {
	if err := r.peers.addNamed(l); err != nil {
		return err
	}
	l.prefix = []byte(l.peer.Identity)
	return nil
}

// send waits for space in the peer's queue. It cannot wait for an unknown peer.
func (r router) send(ctx context.Context, m Message) error {
	l := r.peers.find(m[0])
	if l == nil || len(m) < 2 {
		return ErrNoPeer
	}
	err := l.out.put(ctx, m[1:])
	if errors.Is(err, errQueueClosed) {
		return ErrNoPeer
	}
	return err
}

// receive queues the message; the link put the sender's identity before it.
func (r router) receive(ctx context.Context, _ *link, m Message) error { return r.in.put(ctx, m) }
func (router) subscribe(*link, []byte, bool) error                     { return nil }

// pub sends to every peer that subscribed, and drops messages for peers whose
// queue is full.
type pub struct{ *Socket }

func (p pub) join(l *link) error {
	l.topics = newTopics()
	p.peers.add(l)
	return nil
}

func (p pub) send(_ context.Context, m Message) error {
	for _, l := range p.peers.all() {
		if l.topics.match(m[0]) {
			_ = l.out.offer(m) // it reads too slowly
		}
	}
	return nil
}

// receive reads the subscriptions of ZMTP 3.0, which are messages of one frame.
// Other messages of a subscriber are ignored.
func (p pub) receive(_ context.Context, l *link, m Message) error {
	if len(m) != 1 || len(m[0]) == 0 || m[0][0] > 1 {
		return nil
	}
	return p.subscribe(l, m[0][1:], m[0][0] == 1)
}

func (p pub) subscribe(l *link, topic []byte, want bool) error {
	if len(topic) > maxTopic {
		return violation("subscribe: a topic of more than %d bytes", maxTopic)
	}
	event := Event{Type: Unsubscribed, Peer: l.peer, Topic: string(topic)}
	changed, err := false, error(nil)
	if want {
		event.Type = Subscribed
		changed, err = l.topics.add(event.Topic, p.opts.limits.topics)
	} else {
		changed = l.topics.remove(event.Topic)
	}
	if changed {
		p.opts.OnEvent(event)
	}
	return err
}

// sub receives what it subscribed to.
type sub struct{ *Socket }

// join adds l to the peers and sends it our subscriptions.
func (s sub) join(l *link) error {
	l.subscriptions = s.topics
	s.peers.add(l)
	signal(l.wake)
	return nil
}

func (sub) send(context.Context, Message) error {
	return fault.New(fault.InvalidParams, "a SUB socket only receives").WithHint("send on a PUB socket")
}

// receive drops messages without a subscription, which may have ended meanwhile.
func (s sub) receive(ctx context.Context, _ *link, m Message) error {
	if !s.topics.match(m[0]) {
		return nil
	}
	return s.in.put(ctx, m)
}

func (sub) subscribe(*link, []byte, bool) error { return nil }

// maxTopic is the longest subscription of a peer in bytes.
const maxTopic = 4 << 10

// topics is a set of subscriptions, which are prefixes of messages. Subscribing
// twice is the same as once.
type topics struct {
	mu  sync.RWMutex
	set map[string]struct{}
}

func newTopics() *topics { return &topics{set: make(map[string]struct{})} }

// add reports whether topic is new. A set has at most limit topics.
func (t *topics) add(topic string, limit int) (added bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.set[topic]; known {
		return false, nil
	}
	if len(t.set) >= limit {
		return false, violation("subscribe: more than %d subscriptions", limit)
	}
	t.set[topic] = struct{}{}
	return true, nil
}

// remove reports whether topic was in the set.
func (t *topics) remove(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.set[topic]
	delete(t.set, topic)
	return known
}

// match reports whether a topic is a prefix of frame. It tries each topic or each
// prefix of the frame, whichever are fewer.
func (t *topics) match(frame []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.set) <= len(frame) {
		for topic := range t.set {
			if len(topic) <= len(frame) && topic == string(frame[:len(topic)]) {
				return true
			}
		}
		return false
	}
	for n := range len(frame) + 1 {
		if _, wanted := t.set[string(frame[:n])]; wanted {
			return true
		}
	}
	return false
}

// list returns the topics in any order.
func (t *topics) list() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.set))
}

// peers are the connected links of a socket.
type peers struct {
	mu    sync.RWMutex
	links []*link          // replaced, never modified
	named map[string]*link // of a ROUTER: by identity
	some  chan struct{}    // closed while there is a link
}

func newPeers() *peers {
	return &peers{named: make(map[string]*link), some: make(chan struct{})}
}

// add adds l.
func (p *peers) add(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.append(l)
}

func (p *peers) append(l *link) {
	p.links = append(slices.Clip(p.links), l)
	if len(p.links) == 1 {
		close(p.some)
	}
}

// addNamed adds l under its identity, and generates one if it has none. An
// identity in use is an error.
func (p *peers) addNamed(l *link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.peer.Identity == "" {
		l.peer.Identity = "\x00" + rand.Text()
	}
	if p.named[l.peer.Identity] != nil {
		return fault.New(fault.Conflict, "the identity %q is in use", l.peer.Identity).
			WithHint("give each client a unique identity, or none")
	}
	p.named[l.peer.Identity] = l
	p.append(l)
	return nil
}

// remove removes l.
func (p *peers) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.links)
	p.links = slices.DeleteFunc(slices.Clone(p.links), func(other *link) bool { return other == l })
	if before > 0 && len(p.links) == 0 {
		p.some = make(chan struct{})
	}
	if p.named[l.peer.Identity] == l {
		delete(p.named, l.peer.Identity)
	}
}

// all returns the current links; callers must not modify the slice.
func (p *peers) all() []*link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.links
}

// find is the link with that identity, or nil.
func (p *peers) find(identity []byte) *link {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.named[string(identity)]
}

// wait waits until there is a link, or ctx or done ends.
func (p *peers) wait(ctx context.Context, done <-chan struct{}) error {
	p.mu.RLock()
	some := p.some
	p.mu.RUnlock()
	select {
	case <-some:
		return nil
	case <-done:
		return ErrClosed
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// What a queue does not take.
var (
	errQueueClosed = errors.New("the queue is closed")
	errQueueFull   = errors.New("the queue is full")
)

// queue holds messages between two goroutines, limited in number and in bytes. A
// message counts until it is released, which may be later than it is received.
type queue struct {
	items chan Message  // sent to under mu
	done  chan struct{} // closed with the queue
	space chan struct{} // holds a token when there may be space again
	empty chan struct{} // holds a token when the queue may be empty

	mu     sync.Mutex
	closed bool
	bytes  int
	limit  int
}

func newQueue(messages, bytes int) *queue {
	return &queue{
		items: make(chan Message, messages),
		done:  make(chan struct{}),
		space: make(chan struct{}, 1),
		empty: make(chan struct{}, 1),
		limit: bytes,
	}
}

// offer adds m, or returns errQueueFull. A message larger than the limit fits into an
// empty queue.
func (q *queue) offer(m Message) error {
	size := m.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errQueueClosed
	}
	if q.bytes > 0 && q.bytes+size > q.limit {
		return errQueueFull
	}
	select {
	case q.items <- m:
		q.bytes += size
		return nil
	default:
		return errQueueFull
	}
}

// put adds m, waiting for space until ctx ends or the queue is closed.
func (q *queue) put(ctx context.Context, m Message) error {
	for {
		err := q.offer(m)
		if !errors.Is(err, errQueueFull) {
			signal(q.space) // there may be space for the next waiter
			return err
		}
		select {
		case <-q.space:
		case <-q.done:
			return errQueueClosed
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// release removes the size of messages that were received and handled.
func (q *queue) release(bytes int) {
	q.mu.Lock()
	q.bytes -= bytes
	left := q.bytes
	q.mu.Unlock()
	signal(q.space)
	if left == 0 {
		signal(q.empty)
	}
}

// waitEmpty waits until everything is released or the queue is closed.
func (q *queue) waitEmpty(ctx context.Context) error {
	for {
		q.mu.Lock()
		left := q.bytes
		q.mu.Unlock()
		if left == 0 {
			signal(q.empty) // for other waiters
			return nil
		}
		select {
		case <-q.empty:
		case <-q.done:
			return nil
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// close closes the queue and returns the messages left in it.
func (q *queue) close() (left []Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	close(q.done)
	for {
		select {
		case m := <-q.items:
			left = append(left, m)
		default:
			return left
		}
	}
}

// signal leaves a token unless there is one.
func signal(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}
