package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// connection keeps one upstream connected. One goroutine, run, connects, monitors
// the session and reconnects. Others read the state that it publishes and may wake
// it. A connection belongs to one generation of its spec: a spec that requires
// another connection gets a new one, and the old one publishes nothing any more.
type connection struct {
	opts         *Options
	name         string
	generation   uint64
	personal     bool   // each principal has a connection of its own
	owner        string // the principal whose connection this is; "" for one that is not a principal's
	listing      *connection
	end          func(*connection) // ends the connection of an owner
	log          *slog.Logger
	life         *lifetime
	wake         chan struct{} // a caller needs the server now
	checkNow     chan struct{} // the server may be down
	toolsChanged chan struct{} // the server's tools may have changed
	retry        chan struct{} // there are new credentials
	stopped      chan struct{} // closed when everything of it has ended

	mu           sync.Mutex
	spec         Spec
	retired      bool // stop was called
	state        State
	since        time.Time
	attempt      int  // failures in a row
	backoffStep  int  // failures since a caller last woke it; decides the delay
	lastStartOK  bool // the last attempt succeeded, or is known to have from the cache
	err          error
	challenge    string
	next         time.Time
	session      *session
	start        startAttempt
	waiters      int           // calls that wait for a session
	repeated     repetition    // of the reason of failures
	stateChanged chan struct{} // closed and replaced with every change of state
	detected     detection
	cached       record
	listed       bool                   // the server has listed its tools on this connection
	lists        map[string]*toolList   // of other connections, by owner; see learn
	offered      *toolList              // the result of offers
	offeredOf    *toolList              // the tools for everybody that it was made of
	own          map[*toolList]OwnTools // by list: how it differs from what is offered
	ownOf        *toolList              // what was offered then
	tools        *toolList
	stale        bool
	view         toolView
	stats        Stats
	lastUsed     time.Time
	watchers     map[int]func(method string, params json.RawMessage)
	subscribers  map[string]int           // number of subscribers by resource
	followed     map[string]chan struct{} // by task: receives a token when the server says that it changed
	clients      *clients                 // those with roots that have used the server
	logLevel     string                   // the requested log level, "" for none

	refreshing sync.Mutex // one refresh at a time
}

// newConnection makes a connection without a session. run starts it.
func newConnection(opts *Options, spec Spec, generation uint64) *connection {
	log := opts.Log.With("upstream", spec.Name)
	if spec.Owner != "" {
		log = log.With("owner", spec.Owner)
	}
	return &connection{
		opts: opts, name: spec.Name, spec: spec, generation: generation, personal: spec.Personal(), owner: spec.Owner,
		log:          log,
		life:         newLifetime(),
		wake:         make(chan struct{}, 1),
		checkNow:     make(chan struct{}, 1),
		toolsChanged: make(chan struct{}, 1),
		retry:        make(chan struct{}, 1),
		stopped:      make(chan struct{}),
		state:        StateConnecting,
		since:        time.Now(),
		stateChanged: make(chan struct{}),
		tools:        &toolList{},
		watchers:     map[int]func(string, json.RawMessage){},
		subscribers:  map[string]int{},
		clients:      &clients{},
	}
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
	if c.listsOnly() && !c.currentSpec().canList() {
		c.setAsleep()
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		if c.asleep() && !c.waitForUse(ctx) {
			return
		}
		connected, served, err := c.serve(ctx)
		c.setLastError(err)
		switch {
		case ctx.Err() != nil:
			return
		case c.ends(err):
			c.end(c)
		case errors.Is(err, errIdle), c.unused(), c.refusesListing(err):
			c.setAsleep()
		default:
			if connected {
				c.publish(Lost{Upstream: c.name, Error: err.Error()})
			}
			c.waitToReconnect(ctx, err, served)
		}
	}
}

// serve connects, and stays until the connection ends. served reports whether it was of use.
func (c *connection) serve(ctx context.Context) (connected, served bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		c.update(func() { c.lastStartOK = false })
		return false, false, c.stillSilent(err)
	}
	began := time.Now()
	err = c.monitor(ctx, s)
	served = s.answeredCaller.Load() || time.Since(began) > time.Second || c.wasCalled()
	c.clearSession(s)
	s.noteEnd(ctx, began, err)
	s.close()
	return true, served, err
}

// connect makes one attempt, which includes the list of tools.
func (c *connection) connect(ctx context.Context) (*session, error) {
	c.mu.Lock()
	spec, first := c.spec, c.attempt == 0
	c.mu.Unlock()
	if first {
		c.publish(Connecting{Upstream: spec.Name, Target: spec.Target()})
	}
	end, err := c.beginStart(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer end()
	a, err := c.connectAttempt(ctx, spec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	known := c.detected.Endpoint
	c.start.callsBefore = c.stats.Calls
	c.mu.Unlock()
	s, err := a.open(ctx, known)
	if err != nil {
		return nil, err
	}
	drain(c.checkNow) // a request of an earlier session
	s.openSubscription(ctx, a.hooks)
	tools, err := c.listTools(ctx, s)
	if err != nil {
		return nil, s.abandon(err)
	}
	c.setSession(s, tools)
	c.restoreSubscriptions(ctx, s)
	return s, nil
}

// hooks publish what a transport reports, at limited rates.
func (c *connection) hooks() Hooks {
	lines, garbage, broadcasts := rateLimit{perSecond: 100}, rateLimit{perSecond: 10}, rateLimit{perSecond: 1000}
	return Hooks{
		CheckHealth: func() { signal(c.checkNow) },
		Relist:      func() { signal(c.toolsChanged) },
		Stderr: func(line string) {
			c.setLastLine(line)
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

// listTools lists the server's tools. A server without tools has an empty list. If
// the server refuses to list them, the known tools stay.
func (c *connection) listTools(ctx context.Context, s *session) (*toolList, error) {
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(c.currentSpec()))
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return list, err
	}
	if !s.hasCapability("tools") && refused.Code == wire.CodeMethodNotFound {
		return &toolList{}, nil
	}
	return c.knownTools(refused), nil
}

// knownTools is the current list, for a server that refuses to list its tools now.
func (c *connection) knownTools(refused error) *toolList {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &toolList{
		tools: c.tools.tools, headers: c.tools.headers, tasks: c.tools.tasks, spanLabels: c.tools.spanLabels,
		incomplete: []string{fmt.Sprintf("tools cannot be listed: %v", refused)},
	}
}

// setSession makes s the session that calls use.
func (c *connection) setSession(s *session, tools *toolList) {
	c.setTools(tools, func() bool {
		drain(c.wake)
		drain(c.retry)
		c.session, c.detected, c.listed = s, detection{s.endpoint, s.era}, true
		c.state, c.since, c.err, c.next = StateConnected, time.Now(), nil, time.Time{}
		c.lastUsed, c.lastStartOK = time.Now(), true
		if c.stats.Connects++; c.stats.Connected.IsZero() {
			c.stats.Connected = c.since
		}
		return true
	})
	era, revision := s.describe()
	c.publish(Connected{Upstream: c.name, ToolCount: len(tools.tools), Era: era, Revision: revision})
	c.log.Info("connected", "protocol", revision, "tools", len(tools.tools), "transport", s.endpoint.Transport)
}

// clearSession makes sure that no further call uses s.
func (c *connection) clearSession(s *session) {
	c.mu.Lock()
	current := c.session == s
	c.mu.Unlock()
	if !current {
		return
	}
	c.update(func() {
		c.session, c.stale = nil, true
		c.state, c.since = StateReconnecting, time.Now()
	})
}

// failSession ends a session that a caller found unusable.
func (c *connection) failSession(s *session, err error) {
	c.clearSession(s)
	select {
	case s.failed <- err:
	default:
	}
}

// update changes the state under the lock and notifies those who wait for it.
func (c *connection) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.stateChanged)
	c.stateChanged = make(chan struct{})
}

// publish publishes an event, unless a newer generation has replaced c. What happens to the
// connection of one principal is for that one.
func (c *connection) publish(p event.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return
	}
	if c.spec.Owner == "" {
		c.opts.Events.PublishAbout(c.spec.Name, p)
		return
	}
	c.opts.Events.PublishFor(principal.Owner{ID: c.spec.Owner, Org: c.spec.Person.Org}, p)
}

// stop ends the connection. It returns at once; stopped is closed when it has ended.
func (c *connection) stop() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.life.end(errRemoved)
}

var errRemoved = errors.New("upstream was removed")

// setLastError stores why an attempt or a session ended, unless it was idle.
func (c *connection) setLastError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; errors.Is(err, errIdle) {
		c.err = nil
	}
}

func (c *connection) currentSpec() Spec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec
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
