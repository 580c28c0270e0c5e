package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// secondSession is a session of the sessions era with a server whose own session is
// modern. A modern server cannot ask anything while a call runs, and many tools do just
// that, so callers that can be asked then use this session where the server offers both
// eras. It is opened when first needed and closed when idle. A server that is a child
// process gets a second process for it.
type secondSession struct {
	turn  chan struct{} // held while it is opened
	check chan struct{} // the server may be down

	mu        sync.Mutex
	session   *session
	since     time.Time
	lastUsed  time.Time
	err       error    // why there is none
	refusedBy *session // the modern session of a server that has only one era
	retry     time.Time
}

// How long the second session stays open without calls if the spec has no Idle, and how
// long calls do without it after it could not be opened.
const (
	secondIdle  = 5 * time.Minute
	secondPause = time.Minute
)

func newSecondSession() *secondSession {
	return &secondSession{turn: make(chan struct{}, 1), check: make(chan struct{}, 1)}
}

// sessionFor waits for the session that a request needs.
func (c *connection) sessionFor(ctx context.Context, r *request, since *time.Time) (*session, error) {
	s, err := c.waitFor(ctx, r.caller, since)
	if err != nil || s.era != wire.Modern || r.task || !prefersSessions(r.caller) || protocolOf(c.currentSpec()) != Auto {
		return s, err
	}
	if second := c.openSecond(ctx, s); second != nil {
		return second, nil
	}
	return s, nil
}

// prefersSessions reports whether the sessions era lets a server ask the caller more than
// the modern one does.
func prefersSessions(c *tool.Caller) bool {
	return c != nil && !c.Stateless &&
		(canAnswer(c, wire.MethodElicit) || canAnswer(c, wire.MethodSample) || canAnswer(c, wire.MethodRoots))
}

// openSecond returns the second session, and opens it if necessary. It returns nil if the
// server has no such era or cannot be connected to in it; calls then use first.
func (c *connection) openSecond(ctx context.Context, first *session) *session {
	if s, decided := c.second.get(first); decided {
		return s
	}
	select {
	case c.second.turn <- struct{}{}:
		defer func() { <-c.second.turn }()
	case <-ctx.Done():
		return nil
	}
	if s, decided := c.second.get(first); decided { // another call opened it meanwhile
		return s
	}
	s, err := c.connectSecond(ctx, first)
	switch {
	case err == nil:
		c.log.InfoContext(ctx, "connected in the sessions era too", "revision", s.revision)
		return s
	case ctx.Err() == nil:
		c.second.fail(first, err)
		c.log.InfoContext(ctx, "not connected in the sessions era", "error", err)
	}
	return nil
}

// connectSecond opens the second session at the endpoint of the first.
func (c *connection) connectSecond(ctx context.Context, first *session) (*session, error) {
	ctx, release := c.life.bind(ctx)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, c.opts.startTimeout(c.currentSpec()))
	defer cancel()
	a, err := c.connectAttempt(ctx, c.currentSpec())
	if err != nil {
		return nil, err
	}
	a.spec.Protocol = ProtocolLegacy
	a.hooks.CheckHealth = func() { signal(c.second.check) }
	s, err := a.handshake(ctx, first.endpoint, wire.Legacy)
	if err != nil {
		return nil, err
	}
	if t, ok := s.transport.(interface{ HasSession() bool }); ok && !t.HasSession() {
		s.close()
		return nil, errNoSession
	}
	c.restoreSubscriptions(ctx, s)
	c.second.set(s)
	if !c.life.run(func(ctx context.Context) { c.monitorSecond(ctx, s) }) {
		c.second.forget(s)
		s.close()
		return nil, errClosed
	}
	return s, nil
}

// errNoSession is why a server over HTTP is not used in the sessions era: without a
// session it cannot match the answers to its requests.
var errNoSession = errors.New("server answers initialize without a session")

// monitorSecond watches the second session until it ends, is unusable or idle.
func (c *connection) monitorSecond(ctx context.Context, s *session) {
	began := time.Now()
	err := c.waitForSecond(ctx, s)
	c.second.forget(s)
	s.noteEnd(ctx, began, err)
	s.close()
	c.log.DebugContext(ctx, "session of the sessions era ended", "error", err)
}

func (c *connection) waitForSecond(ctx context.Context, s *session) error {
	idle := positive(c.currentSpec().Idle, secondIdle)
	interval := min(s.healthInterval(), idle)
	timer := time.NewTicker(interval)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.transport.Done():
			return s.transport.Err()
		case err = <-s.failed:
		case <-c.second.check:
			err = c.checkHealth(ctx, s)
		case <-timer.C:
			if c.second.closeIdle(s, idle) {
				return errIdle
			}
			if s.sinceLastReceived() >= interval {
				err = c.checkHealth(ctx, s)
			}
		}
		if err != nil {
			return err
		}
	}
}

// repeatForSecond sends a request that concerns all callers to the second session too.
func (c *connection) repeatForSecond(ctx context.Context, r *request) {
	if s := c.second.open(); s != nil {
		_, _ = s.request(ctx, &request{method: r.method, params: r.params, timeout: c.opts.HealthTimeout}) // as after a reconnect
	}
}

// checkSoon has the health of a session checked.
func (c *connection) checkSoon(s *session) {
	if c.second.is(s) {
		signal(c.second.check)
		return
	}
	signal(c.checkNow)
}

// get returns the session if it is open. decided is false if it is to be opened; first is
// the modern session that is used instead if there is none.
func (b *secondSession) get(first *session) (s *session, decided bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil {
		b.lastUsed = time.Now()
		return b.session, true
	}
	return nil, b.refusedBy == first || time.Now().Before(b.retry)
}

func (b *secondSession) set(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	drain(b.check)
	b.session, b.since, b.lastUsed = s, time.Now(), time.Now()
	b.err, b.refusedBy, b.retry = nil, nil, time.Time{}
}

// fail remembers why the session could not be opened. A server that has answered is not
// asked again before it is connected anew.
func (b *secondSession) fail(first *session, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var answered *wire.Error
	var status *statusError
	b.err, b.retry = err, time.Now().Add(secondPause)
	if errors.As(err, &answered) || errors.As(err, &status) || errors.Is(err, errNoSession) {
		b.refusedBy = first
	}
}

// forget makes sure that no further call uses s.
func (b *secondSession) forget(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session == s {
		b.session = nil
	}
}

func (b *secondSession) is(s *session) bool { return b.open() == s }

// open is the session, or nil.
func (b *secondSession) open() *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// closeIdle forgets s if no call used it for so long, and reports whether it did.
func (b *secondSession) closeIdle(s *session, idle time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.activeCalls() > 0 || time.Since(b.lastUsed) < idle {
		return false
	}
	b.session = nil
	return true
}

// status is nil while the session is neither open nor tried in vain.
func (b *secondSession) status() *Second {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.session != nil:
		return &Second{Era: b.session.era.String(), Revision: b.session.revision, Since: b.since}
	case b.err != nil:
		return &Second{Era: wire.Legacy.String(), LastError: b.err.Error()}
	}
	return nil
}
