package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
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
	checkNow     chan struct{} // the server may be down
	toolsChanged chan struct{} // the server's tools may have changed
	stopped      chan struct{} // closed when everything of it has ended
	refreshing   sync.Mutex    // one refresh at a time
}

// who says whose connection it is and what is wanted of it, and publishes its events. Only the
// spec is ever replaced, as a whole.
type who struct {
	*shared
	name       string
	generation uint64
	personal   bool   // each principal has a connection of its own
	owner      string // the principal whose connection this is; "" for one that is not a principal's
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
		who: w, phase: newPhase(w), known: &known{who: w, tools: &listing{}},
		life:         newLifetime(),
		checkNow:     make(chan struct{}, 1),
		toolsChanged: make(chan struct{}, 1),
		stopped:      make(chan struct{}),
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

// run keeps the upstream connected until ctx ends. It begins when previous is
// closed.
func (c *connection) run(ctx context.Context, previous <-chan struct{}) {
	defer close(c.stopped)
	defer c.life.wait()
	if !c.opts.OnDemand && c.owner == "" { // then start has loaded it
		c.loadCache()
	}
	<-previous
	if c.listsOnly() && !c.spec.Load().canList() {
		c.phase.sleep(nil)
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		if c.phase.now().state == StateAsleep && !c.waitForUse(ctx) {
			return
		}
		connected, served, err := c.serve(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case c.ends(err):
			c.end(c)
		case errors.Is(err, errIdle):
			c.phase.sleep(nil)
		case c.unused(), c.refusesListing(err):
			c.phase.sleep(err)
		default:
			c.waitToReconnect(ctx, err, connected, served)
		}
	}
}

// waitForUse waits until a caller needs the server. It reports false if ctx ends.
func (c *connection) waitForUse(ctx context.Context) bool {
	c.publish(Asleep{Upstream: c.name})
	select {
	case <-c.phase.wake:
		c.phase.awake()
		return true
	case <-ctx.Done():
		return false
	}
}

// serve connects, and stays until the connection ends. served reports whether it was of use.
func (c *connection) serve(ctx context.Context) (connected, served bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return false, false, c.phase.attemptFailed(err)
	}
	began := time.Now()
	err = c.monitor(ctx, s)
	served = s.answeredCaller.Load() || time.Since(began) > time.Second || c.stats.now().Calls > s.callsBefore
	c.clearSession(s)
	s.noteEnd(ctx, began, err)
	s.close()
	return true, served, err
}

// connect makes one attempt, which includes the list of tools.
func (c *connection) connect(ctx context.Context) (*session, error) {
	spec := c.spec.Load()
	if c.phase.now().attempt == 0 {
		c.publish(Connecting{Upstream: spec.Name, Target: spec.Target()})
	}
	end, err := c.beginStart(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	a, err := c.connectAttempt(ctx, *spec)
	if err != nil {
		return nil, err
	}
	calls := c.stats.now().Calls
	s, err := a.open(ctx, c.known.stored().Detected.Endpoint)
	if err != nil {
		return nil, err
	}
	s.callsBefore = calls
	drain(c.checkNow) // a request of an earlier session
	s.openSubscription(ctx, a.hooks)
	tools, err := c.listTools(ctx, s)
	if err != nil {
		return nil, s.abandon(err)
	}
	c.useSession(s, tools)
	c.restoreSession(ctx, s)
	return s, nil
}

// hooks publish what a transport reports, at limited rates.
func (c *connection) hooks() Hooks {
	lines, garbage, broadcasts := rateLimit{perSecond: 100}, rateLimit{perSecond: 10}, rateLimit{perSecond: 1000}
	return Hooks{
		CheckHealth: func() { signal(c.checkNow) },
		Relist:      func() { signal(c.toolsChanged) },
		Stderr: func(line string) {
			c.phase.setLastLine(line)
			if lines.allow(time.Now()) {
				c.publish(Stderr{c.name, line})
				c.log.Debug("stderr", "line", line)
			}
		},
		Garbage: func(text string) {
			if garbage.allow(time.Now()) {
				c.publish(Garbage{c.name, text})
				c.log.Debug("not a message", "text", text)
			}
		},
		Broadcast: func(kind string, data json.RawMessage) {
			if broadcasts.allow(time.Now()) {
				c.publish(newBroadcast(c.name, kind, data))
			}
		},
	}
}

// publishTools publishes how the tools have changed, if they have.
func (c *connection) publishTools(before, after []tool.Info) (differ bool) {
	added, removed, changed := diff(before, after)
	if differ = len(added)+len(removed)+len(changed) > 0; differ {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(after), Added: added, Removed: removed, Changed: changed})
	}
	return differ
}

// listTools lists the server's tools. A server without tools has an empty list. If
// the server refuses to list them, the known tools stay.
func (c *connection) listTools(ctx context.Context, s *session) (*listing, error) {
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(*c.spec.Load()))
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return list, err
	}
	if !s.hasCapability("tools") && refused.Code == wire.CodeMethodNotFound {
		return &listing{}, nil
	}
	return c.known.refused(refused), nil
}

// useSession makes s the session that calls use.
func (c *connection) useSession(s *session, tools *listing) {
	before := c.known.connected(s, tools)
	c.phase.connected(s)
	c.stats.connected()
	c.announceTools(before, tools)
	era, revision := s.describe()
	c.publish(Connected{Upstream: c.name, ToolCount: len(tools.tools), Era: era, Revision: revision})
	c.log.Info("connected", "protocol", revision, "tools", len(tools.tools), "transport", s.endpoint.Transport)
}

// clearSession makes sure that no further call uses s.
func (c *connection) clearSession(s *session) {
	c.known.lost(s)
	c.phase.lost(s)
}

// failSession ends a session that a caller found unusable.
func (c *connection) failSession(s *session, err error) {
	c.clearSession(s)
	select {
	case s.failed <- err:
	default:
	}
}

// stop ends the connection. It returns at once; stopped is closed when it has ended.
func (c *connection) stop() {
	c.retire()
	c.life.end(errRemoved)
}

var errRemoved = errors.New("upstream was removed")

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
	ctx context.Context
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
