package upstream

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

// connection keeps one upstream connected. One goroutine, run, connects, monitors
// the session and reconnects; others ask it for something by a signal. A connection belongs
// to one generation of its spec: a spec that requires another connection gets a new one, and
// the old one publishes nothing any more. Each part below has a lock of its own, and none is
// held while another is taken.
type connection struct {
	*who
	phase    *phase
	known    *known
	restored restored
	clients  clients
	followed followed
	stats    counter

	lister *connection       // lists the tools for everybody; nil if this one does
	end    func(*connection) // ends the connection of an owner

	life         *lifetime
	secrets      atomic.Pointer[string] // of files, that the latest session was opened with
	checkNow     chan struct{}          // the server may be down
	toolsChanged chan struct{}          // the server's tools may have changed
	// offeringChanged: what it offers beside tools may have changed.
	offeringChanged chan struct{}
	stopped         chan struct{} // closed when everything of it has ended
	refreshing      sync.Mutex    // one refresh at a time
}

// who says whose connection it is and what is wanted of it, and publishes its events. Only the
// spec is ever replaced, as a whole.
type who struct {
	*shared
	name       string
	generation uint64
	personal   bool   // each principal has a connection of its own
	owner      string // the principal whose connection this is; "" for one that is not a principal's
	replaces   bool   // an earlier connection of the upstream
	log        *slog.Logger
	spec       atomic.Pointer[Spec]

	mu      sync.Mutex
	retired bool // another generation has replaced it
}

// connectionKey identifies a connection; the owner is empty for one that is not a
// principal's.
type connectionKey struct{ name, owner string }

func (w *who) key() connectionKey { return connectionKey{w.name, w.owner} }

// newConnection makes a connection without a session. run starts it.
func newConnection(in *shared, spec Spec, generation uint64) *connection {
	log := in.opts.Log.With("upstream", spec.Name)
	if spec.Owner != "" {
		log = log.With("owner", spec.Owner)
	}
	w := &who{shared: in, name: spec.Name, generation: generation, personal: spec.Personal(), owner: spec.Owner, log: log}
	w.spec.Store(&spec)
	return &connection{
		who: w, phase: newPhase(w), known: &known{who: w, tools: &listing{}, hasOffering: make(chan struct{})},
		life:         newLifetime(),
		checkNow:     make(chan struct{}, 1),
		toolsChanged: make(chan struct{}, 1), offeringChanged: make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
}

// adjust replaces the spec by one that needs no new connection.
func (c *connection) adjust(spec Spec) {
	old, tools := c.spec.Swap(&spec), c.known.list()
	if !slices.Equal(old.Roots, spec.Roots) {
		c.sendRootsChanged()
	}
	c.publishTools(old.allowed(tools), spec.allowed(tools))
	if !slices.Equal(old.Prompts, spec.Prompts) || !slices.Equal(old.Resources, spec.Resources) || old.DynamicSkills != spec.DynamicSkills {
		now := c.known.offered()
		c.publishOffering(&now)
	}
	c.phase.retryNow() // its owner may have repaired what was wrong
}

// inheritFrom takes the statistics, subscriptions and log level of the previous
// generation and, if the server is the same, what is known about it.
func (c *connection) inheritFrom(old *connection) {
	c.stats.inherit(&old.stats)
	c.restored.inherit(&old.restored)
	if old.spec.Load().sameServer(*c.spec.Load()) {
		c.known.inherit(old.known)
		c.phase.inherit(old.phase)
	}
}

// publish publishes an event, unless a newer generation has replaced the connection. What
// happens to the connection of one principal is for that one.
func (w *who) publish(p event.Payload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.retired:
	case w.owner == "":
		w.opts.Events.PublishAbout(w.name, p)
	default:
		w.opts.Events.PublishFor(principal.Owner{ID: w.owner, Org: w.spec.Load().Person.Org}, p)
	}
}

// retire ends the publishing.
func (w *who) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retired = true
}

func (w *who) isRetired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.retired
}

// listsOnly reports whether the connection is for listing tools only.
func (w *who) listsOnly() bool { return w.personal && w.owner == "" }

// isDenied reports whether the owner may not connect. Another attempt would end like this one,
// so there is none before the owner's next request.
func (w *who) isDenied(err error) bool {
	return w.owner != "" && fault.CodeOf(err) == fault.Denied
}

// restored is what callers have asked of the server and a new session is given again.
type restored struct {
	mu          sync.Mutex
	logLevel    string         // the requested log level, "" for none
	subscribers map[string]int // number of subscribers by resource
}

// subscribe counts a subscriber of a resource more, or one less. It reports whether the server
// has to be told: the first subscriber makes the subscription that all share, and the last ends it.
func (r *restored) subscribe(uri string, on bool) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.subscribers[uri]
	switch {
	case on && before == 0 && r.subscribers == nil:
		r.subscribers = map[string]int{uri: 1}
	case on:
		r.subscribers[uri]++
	case before > 1:
		r.subscribers[uri]--
	default:
		delete(r.subscribers, uri)
	}
	return before == 0 || r.subscribers[uri] == 0
}

func (r *restored) hasSubscribers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subscribers) > 0
}

func (r *restored) setLogLevel(level string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logLevel = level
}

// session is what to ask of a new session: the log level and resources.
func (r *restored) session() (level string, uris []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logLevel, slices.Collect(maps.Keys(r.subscribers))
}

// inherit takes over from the connection that this one replaces.
func (r *restored) inherit(old *restored) {
	old.mu.Lock()
	level, subscribers := old.logLevel, maps.Clone(old.subscribers)
	old.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logLevel, r.subscribers = level, subscribers
}

// signal sets a flag, which is a channel of capacity one.
func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// drain clears such a flag.
func drain(flag chan struct{}) {
	select {
	case <-flag:
	default:
	}
}

// lifetime is a context that ends with its owner, and the goroutines that run for
// the owner.
type lifetime struct {
	ctx context.Context // of its goroutines, until end
	end context.CancelCauseFunc

	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

func newLifetime() *lifetime {
	l := &lifetime{}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	return l
}

// run calls f in a goroutine that wait waits for. After wait it does nothing and
// returns false.
func (l *lifetime) run(f func(ctx context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.wg.Go(func() { f(l.ctx) })
	return true
}

// bind returns a context that ends with ctx or with the lifetime. The caller calls
// release.
func (l *lifetime) bind(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// wait waits for all goroutines. No new ones start after it.
func (l *lifetime) wait() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.wg.Wait()
}

// orCause is ctx's cause if it has ended, and err otherwise.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// rateLimit allows so many events per second.
type rateLimit struct {
	perSecond int

	mu     sync.Mutex
	second time.Time // when the current second began
	count  int
}

func (r *rateLimit) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.second) >= time.Second {
		r.second, r.count = now, 0
	}
	r.count++
	return r.count <= r.perSecond
}
