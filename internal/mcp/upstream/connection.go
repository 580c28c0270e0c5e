package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// connection keeps one upstream connected. A single goroutine connects, tends the
// connection and connects again; everybody else reads what it has published, and
// may wake it. A keeper belongs to one generation of its spec: when the spec
// changes so that the connection does, another keeper takes over, and whatever
// the old one still finds out reaches nobody.
type connection struct {
	opts         *Options
	name         string
	generation   uint64
	log          *slog.Logger
	life         *lifetime
	wake         chan struct{} // somebody needs the server now
	checkNow     chan struct{} // it may be gone
	toolsChanged chan struct{} // its tools may have changed
	retry        chan struct{} // there are other credentials
	stopped      chan struct{} // closed when nothing of it is left

	mu           sync.Mutex
	spec         Spec
	retired      bool
	state        State
	since        time.Time
	attempt      int  // failures in a row
	backoffStep  int  // failures since somebody last was in a hurry; decides the delay
	lastStartOK  bool // it came up when last tried, or is known from then
	err          error
	challenge    string
	next         time.Time
	session      *session
	loggedReason string        // why it is away, as last logged
	stateChanged chan struct{} // closed and replaced with every change of state
	detected     detection
	cached       record
	tools        *toolList
	stale        bool
	view         toolView
	stats        Stats
	lastUsed     time.Time
	watchers     map[int]func(method string, params json.RawMessage)
	subscribers  map[string]int // resources followed, with how many follow them
	logLevel     string         // log level asked for, "" for none

	refreshing sync.Mutex // one list at a time
}

// newConnection makes a keeper that knows nothing yet. run starts it.
func newConnection(opts *Options, spec Spec, generation uint64) *connection {
	return &connection{
		opts: opts, name: spec.Name, spec: spec, generation: generation,
		log:          opts.Log.With("upstream", spec.Name),
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
	}
}

// loadCache takes up what the cache knows of the server, unless the generation
// before has told already. A lazy server that is known may sleep; one nothing is
// cached of has to introduce itself first.
func (c *connection) loadCache() {
	known, found := c.opts.loadRecord(c.currentSpec())
	list := known.tools(c.name)
	c.update(func() {
		if found = found && c.cached.Server == ""; found {
			c.cached, c.detected, c.tools, c.stale, c.lastStartOK = known, known.Verdict, list, true, true
			if known.Verdict.Way.Transport == HTTP {
				c.detected.Era = wire.Unknown // asking costs little, and servers learn
			}
		}
		if c.spec.lazy() && c.cached.Server != "" {
			c.state = StateAsleep
		}
	})
	if found && len(list.tools) > 0 {
		names, _, _ := diff(nil, list.tools)
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(names), Added: names})
	}
}

// run keeps the upstream until its life ends, but not before after is closed.
func (c *connection) run(ctx context.Context, after <-chan struct{}) {
	defer close(c.stopped)
	c.loadCache()
	<-after
	for ctx.Err() == nil {
		if c.asleep() && !c.waitForUse(ctx) {
			return
		}
		s, err := c.connect(ctx)
		served := false
		if err == nil {
			began := time.Now()
			err = c.monitor(ctx, s)
			served = s.answeredCaller.Load() || time.Since(began) > time.Second
			c.clearSession(s)
			s.close()
		} else {
			c.update(func() { c.lastStartOK = false })
		}
		c.setLastError(err)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errIdle), c.unwanted():
			c.setAsleep()
		default:
			c.waitToReconnect(ctx, err, served)
		}
	}
}

// setLastError keeps why an attempt or a connection ended, if it was not on purpose.
func (c *connection) setLastError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; errors.Is(err, errIdle) {
		c.err = nil
	}
}

// asleep tells whether the server is not to run just now.
func (c *connection) asleep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == StateAsleep
}

// unwanted tells that nobody waits any more for a lazy server that does not come up.
func (c *connection) unwanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.lazy() && c.cached.Server != "" && time.Since(c.lastUsed) > c.opts.ConnectTimeout
}

// waitForUse waits until somebody needs the server.
func (c *connection) waitForUse(ctx context.Context) bool {
	c.publish(Asleep{Upstream: c.name})
	select {
	case <-c.wake:
		c.update(func() { c.state, c.since, c.lastStartOK = StateConnecting, time.Now(), true })
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *connection) setAsleep() {
	c.update(func() {
		drain(c.wake) // whoever still needs the server sees the change and wakes us again
		c.state, c.since, c.attempt, c.backoffStep = StateAsleep, time.Now(), 0, 0
	})
}

// connect makes one attempt, up to a list of tools.
func (c *connection) connect(ctx context.Context) (*session, error) {
	c.mu.Lock()
	spec, known, first := c.spec, c.detected, c.attempt == 0
	c.mu.Unlock()
	if first {
		c.publish(Connecting{Upstream: spec.Name, Target: spec.Target()})
	}
	o := connectAttempt{opts: c.opts, spec: spec, note: c.notifyWatchers, hooks: c.hooks()}
	s, found, err := o.open(ctx, known)
	if err != nil {
		return nil, err
	}
	drain(c.checkNow) // of an earlier connection
	s.openSubscription(ctx, o.hooks)
	list, err := c.listTools(ctx, s)
	if err != nil {
		s.close()
		return nil, err
	}
	c.setSession(s, found, list)
	c.restoreSubscriptions(ctx, s)
	return s, nil
}

// hooks is what we hear of a connection. Chatter is heard only so much of.
func (c *connection) hooks() Hooks {
	lines, garbage, news := rateLimit{perSecond: 100}, rateLimit{perSecond: 10}, rateLimit{perSecond: 1000}
	return Hooks{
		CheckHealth: func() { signal(c.checkNow) },
		Relist:      func() { signal(c.toolsChanged) },
		Stderr: func(line string) {
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
			if news.allow(time.Now()) {
				c.publish(newBroadcast(c.name, kind, data))
			}
		},
	}
}

// listTools lists the server's tools. One that has none is still a server; of one
// that refuses to list them we keep those we know.
func (c *connection) listTools(ctx context.Context, s *session) (*toolList, error) {
	list, err := s.listTools(ctx, c.name, c.opts.ConnectTimeout)
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return list, err
	}
	if !s.hasCapability("tools") && refused.Code == wire.CodeMethodNotFound {
		return &toolList{}, nil
	}
	c.mu.Lock()
	list = &toolList{tools: c.tools.tools, headers: c.tools.headers}
	c.mu.Unlock()
	list.drop("tools cannot be listed: %v", refused)
	return list, nil
}

// setSession makes a session the one that serves.
func (c *connection) setSession(s *session, found detection, list *toolList) {
	c.setTools(list, func() bool {
		drain(c.wake)
		c.session, c.detected = s, found
		c.state, c.since, c.err, c.next = StateConnected, time.Now(), nil, time.Time{}
		c.lastUsed, c.lastStartOK, c.loggedReason = time.Now(), true, ""
		return true
	})
	c.publish(Connected{Upstream: c.name, ToolCount: len(list.tools), Era: s.era.String(), Revision: s.revision})
	c.log.Info("connected", "era", s.era.String(), "tools", len(list.tools), "transport", s.endpoint.Transport)
}

// clearSession ends the service of a session: nobody is given it any more.
func (c *connection) clearSession(s *session) {
	c.mu.Lock()
	serves := c.session == s
	c.mu.Unlock()
	if !serves {
		return
	}
	c.update(func() {
		c.session, c.stale = nil, true
		c.state, c.since = StateReconnecting, time.Now()
	})
}

// failSession ends a session that a caller found broken.
func (c *connection) failSession(s *session, err error) {
	c.clearSession(s)
	select {
	case s.failed <- err:
	default:
	}
}

// waitToReconnect says how an attempt or a connection ended and waits until the next
// attempt is due, or somebody needs the server. A connection that served makes
// the counting of failures begin anew; one that broke at once does not.
func (c *connection) waitToReconnect(ctx context.Context, err error, served bool) {
	challenge, auth := isAuthError(err)
	var delay time.Duration
	attempt, level := 0, slog.LevelDebug
	c.update(func() {
		if c.loggedReason != err.Error() { // the same over and over is no news
			c.loggedReason, level = err.Error(), slog.LevelInfo
		}
		if served {
			c.attempt, c.backoffStep = 0, 0
		}
		c.attempt++
		c.backoffStep++
		attempt = c.attempt
		c.state, c.since = StateReconnecting, time.Now()
		delay = max(c.opts.Backoff.Delay(c.backoffStep), minDelay(attempt))
		if auth {
			c.state, c.challenge, delay = StateNeedsAuth, challenge, c.opts.AuthRetry
		}
		c.next = time.Now().Add(delay)
	})
	c.log.Log(ctx, level, "away", "attempt", attempt, "retry_in", delay, "error", err)
	if auth {
		c.publish(NeedsAuth{Upstream: c.name, Error: err.Error(), Challenge: challenge, Hint: fault.HintOf(c.needsAuthError(err, challenge))})
	} else {
		c.publish(Reconnecting{Upstream: c.name, Attempt: attempt, DelayMS: delay.Milliseconds(), Error: err.Error()})
	}
	c.sleepUntilRetry(ctx, delay, minDelay(attempt), auth)
}

// minDelay is the shortest rest after so many failures in a row: callers in a hurry
// must not turn attempts into a busy loop, nor into a storm of processes.
func minDelay(attempt int) time.Duration {
	return min(time.Duration(attempt)*20*time.Millisecond, 500*time.Millisecond)
}

// sleepUntilRetry waits for delay, or, past least, until somebody wakes us: then the delays
// begin anew with the shortest. Credentials that are wanting make us deaf to that.
func (c *connection) sleepUntilRetry(ctx context.Context, delay, least time.Duration, deaf bool) {
	if clock.Real().Sleep(ctx, min(least, delay)) != nil {
		return
	}
	wake := c.wake
	if deaf {
		wake = nil
	}
	timer := time.NewTimer(max(delay-least, 0))
	defer timer.Stop()
	select {
	case <-wake:
		c.update(func() { c.backoffStep = 0 })
	case <-c.retry:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// update alters what others see, and tells those who wait for it.
func (c *connection) update(alter func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	alter()
	close(c.stateChanged)
	c.stateChanged = make(chan struct{})
}

// publish tells the house, unless another generation has taken over.
func (c *connection) publish(p event.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.retired {
		c.opts.Events.Publish(p)
	}
}

// stop makes the keeper end. It returns at once; done tells when it has.
func (c *connection) stop() {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	c.life.end(errRemoved)
}

var errRemoved = errors.New("upstream was removed")

// signal sets a flag that is a channel of one.
func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

func drain(flag chan struct{}) {
	select {
	case <-flag:
	default:
	}
}
