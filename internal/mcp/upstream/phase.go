package upstream

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
)

// phase is what a connection is doing and why, the session that calls use, and who needs
// it. Only its methods change the state. It knows no server, and its lock is its own.
//
//	connecting     the first attempt, or the first after asleep
//	installing     an attempt whose package is being installed
//	starting       an attempt whose process runs and has not answered yet
//	connected      there is a session
//	reconnecting   the wait for a further attempt, and the attempt itself
//	needs_auth     as reconnecting, with rare attempts until there are credentials
//	failed         as reconnecting, with rare attempts: the process ended the same way several times
//	asleep         no attempts until somebody needs the server
type phase struct {
	who   *who
	wake  chan struct{} // a caller needs the server now
	retry chan struct{} // somebody asks for an attempt, as there are new credentials

	session  atomic.Pointer[session] // set with mu; nil unless connected
	lastUsed atomic.Int64            // Unix nanoseconds

	mu          sync.Mutex
	situation                 // now
	changed     chan struct{} // closed and replaced with every change
	backoffStep int           // failures since a caller last woke it; decides the delay
	lastStartOK bool          // the last attempt succeeded, or is known to have from the cache
	repeated    repetition    // of the reason of failures
	turn        *startTurn    // of the process that is being started; nil if none is
	waiters     int           // calls that wait for a session
}

// situation is what a phase says about itself.
type situation struct {
	state     State
	since     time.Time
	attempt   int       // failures in a row
	err       error     // why the last attempt or session ended; nil when connected
	challenge string    // of the server, in StateNeedsAuth
	next      time.Time // attempt
	queued    bool      // the process waits for its turn to start, or is being started
	pkg       string    // that was installed for the process, with its version
	lastLine  string    // that the process wrote to its standard error
}

func newPhase(who *who) *phase {
	return &phase{
		who: who, wake: make(chan struct{}, 1), retry: make(chan struct{}, 1), changed: make(chan struct{}),
		situation: situation{state: StateConnecting, since: time.Now()},
	}
}

// now is the current situation.
func (p *phase) now() situation {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.situation
	now.queued = p.turn != nil
	return now
}

// update makes a change and notifies those who wait for one.
func (p *phase) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// enter sets the state; p.mu is held.
func (p *phase) enter(state State) { p.state, p.since = state, time.Now() }

// connected makes s the session that calls use.
func (p *phase) connected(s *session) {
	p.update(func() {
		drain(p.wake)
		drain(p.retry)
		p.session.Store(s)
		p.enter(StateConnected)
		p.err, p.next, p.lastStartOK = nil, time.Time{}, true
		p.use()
	})
}

// lost makes sure that no further call uses s.
func (p *phase) lost(s *session) {
	if p.session.Load() != s {
		return
	}
	p.update(func() {
		if p.session.CompareAndSwap(s, nil) {
			p.enter(StateReconnecting)
		}
	})
}

// attemptFailed records that an attempt brought no session. It returns the reason: that the
// server does not answer, if the last session ended for that and there was no answer since.
func (p *phase) attemptFailed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastStartOK = false
	var silent *silentError
	var start *startTimeoutError
	timedOut := fault.CodeOf(err) == fault.Timeout || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &start) || errors.Is(err, errNoProgress)
	if timedOut && errors.As(p.err, &silent) {
		return silent
	}
	return err
}

// failure is a failed attempt or a lost session, and when the next attempt follows.
type failure struct {
	situation
	changed bool          // the reason is another one than before
	final   bool          // it is the one with which the process is given up for a while
	delay   time.Duration // until the next attempt
	least   time.Duration // until a caller can trigger one
}

// A process is given up for a while when it failed so many times in a row with the
// same words, for Options.FailedAfter at least, or so many times in any way.
const (
	finalRepetitions = 5
	finalFailures    = 20
)

// failedLeast is how long calls cannot trigger an attempt in StateFailed.
const failedLeast = 30 * time.Second

// failed decides how it goes on after a failed attempt or a lost session. A session that
// served calls resets the backoff; one that failed at once does not.
func (p *phase) failed(err error, served bool) (f failure) {
	challenge, auth := isAuthError(err)
	opts, spec := p.who.opts, p.who.spec.Load()
	p.update(func() {
		if served {
			p.attempt, p.backoffStep, p.repeated = 0, 0, repetition{}
		}
		p.attempt++
		p.backoffStep++
		f.changed = p.repeated.add(err)
		p.enter(StateReconnecting)
		p.challenge = challenge
		// Callers that wake the connection cannot make it retry, and start processes, in a loop.
		f.least = min(20*time.Millisecond<<min(p.attempt-1, 10), time.Second)
		f.delay = max(opts.Backoff.Delay(p.backoffStep), f.least)
		switch {
		case auth:
			p.state, f.delay = StateNeedsAuth, opts.AuthRetry
		case p.who.isDenied(err):
			p.state, f.delay = StateNeedsAuth, spec.idle()
		case spec.Command != "" && (p.repeated.lasts(opts.FailedAfter) || p.attempt >= finalFailures):
			f.final, p.repeated.final = !p.repeated.final, true
			p.state, f.delay, f.least = StateFailed, opts.FailedRetry, min(failedLeast, opts.FailedRetry)
		}
		p.err, p.next = err, time.Now().Add(f.delay)
		f.situation = p.situation
	})
	return f
}

// awaitRetry waits for the delay. After the least delay a caller ends the wait and resets
// the backoff, unless credentials are missing. Somebody who asks for an attempt ends it
// at once.
func (p *phase) awaitRetry(ctx context.Context, f failure) {
	due, least := time.NewTimer(f.delay), time.NewTimer(f.least)
	defer due.Stop()
	defer least.Stop()
	var wake chan struct{} // not yet
	for {
		select {
		case <-least.C:
			if f.state != StateNeedsAuth {
				wake = p.wake
			}
			continue
		case <-wake:
			p.update(func() { p.backoffStep = 0 })
		case <-p.retry:
		case <-due.C:
		case <-ctx.Done():
		}
		return
	}
}

// repetition counts failures in a row that have the same reason.
type repetition struct {
	words string
	count int
	since time.Time
	final bool // the process was given up for them
}

// lasts reports whether the failures are as many, and have been for as long, as it takes to
// give the process up for a while. One that is replaced is gone for a moment.
func (r *repetition) lasts(atLeast time.Duration) bool {
	return r.count >= finalRepetitions && time.Since(r.since) >= atLeast
}

// add counts a failure. It reports whether the reason is another one than before.
func (r *repetition) add(err error) (changed bool) {
	words := strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) { // times, ports and process ids differ
			return -1
		}
		return c
	}, logReason(err))
	if changed = words != r.words; changed {
		*r = repetition{words: words, since: time.Now()}
	}
	r.count++
	return changed
}

// retryNow asks for an attempt at once, unless there is a session.
func (p *phase) retryNow() {
	p.update(func() {
		if p.session.Load() != nil {
			return
		}
		if p.state == StateFailed { // calls wait again
			p.enter(StateReconnecting)
		}
		if p.state == StateAsleep && p.who.listsOnly() { // there may be a login now
			signal(p.wake)
		}
		signal(p.retry)
	})
}

// retryLogin makes another attempt if the last one lacked credentials: the owner may have
// logged in since.
func (p *phase) retryLogin() {
	if p.now().state != StateNeedsAuth {
		return
	}
	p.update(func() {
		if p.state == StateNeedsAuth { // others see an attempt in progress, and wait for it
			p.enter(StateConnecting)
			signal(p.retry)
		}
	})
}

// sleep stops attempts until the next call. reason is why the last one or the last session
// ended; nil if the server was idle or there was none.
func (p *phase) sleep(reason error) {
	p.update(func() {
		drain(p.wake) // a caller that still needs the server sees the change of state and wakes it again
		p.enter(StateAsleep)
		p.err, p.attempt, p.backoffStep = reason, 0, 0
	})
}

// awake begins the first attempt after StateAsleep.
func (p *phase) awake() {
	p.update(func() {
		p.enter(StateConnecting)
		p.lastStartOK = true
	})
}

// wakeUp starts a server that is asleep. It does not wait for it.
func (p *phase) wakeUp() {
	if p.now().state == StateAsleep {
		p.use()
		p.awake()
		signal(p.wake)
	}
}

// loaded begins with what the cache has: asleep if the server need not be started yet.
func (p *phase) loaded(found, asleep bool) {
	p.update(func() {
		p.lastStartOK = p.lastStartOK || found
		if asleep {
			p.state = StateAsleep
		}
	})
}

// inherit takes over from the connection that this one replaces, if the server is the same.
func (p *phase) inherit(old *phase) {
	old.mu.Lock()
	startOK := old.lastStartOK
	old.mu.Unlock()
	p.update(func() {
		if p.session.Load() == nil {
			p.lastStartOK = startOK
		}
	})
}

// queue sets the turn of the process that is to be started. Calls that wait for it come first.
func (p *phase) queue(turn *startTurn) {
	p.update(func() {
		p.turn, p.lastLine = turn, ""
		if p.state == StateInstalling {
			p.enter(StateConnecting)
		}
		if p.waiters > 0 {
			p.who.starts.prefer(turn)
		}
	})
}

// installing records what is being done to install the package of the server.
func (p *phase) installing(doing string) {
	p.update(func() {
		if p.state != StateInstalling {
			p.enter(StateInstalling)
		}
		p.lastLine = doing
	})
	p.who.publish(Installing{Upstream: p.who.name, Doing: doing})
}

// runs records which package the process is of.
func (p *phase) runs(pkg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pkg = pkg
}

// starting records that the process runs.
func (p *phase) starting() { p.update(func() { p.enter(StateStarting) }) }

// starts is the turn of the process that is being started; nil if none is.
func (p *phase) starts() *startTurn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn
}

// started records that the process has answered, or that its start has failed.
func (p *phase) started() { p.update(func() { p.turn = nil }) }

// setLastLine stores what the process last wrote, for its status.
func (p *phase) setLastLine(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastLine = redact.Cut(line, maxShownLine)
}

// use notes that somebody needs the server, which keeps a lazy one running.
func (p *phase) use() { p.lastUsed.Store(time.Now().UnixNano()) }

func (p *phase) sinceLastUse() time.Duration { return time.Since(time.Unix(0, p.lastUsed.Load())) }

// addWaiter counts a call that waits for the server, and lets its process start before
// others.
func (p *phase) addWaiter() (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters++
	if p.turn != nil {
		p.who.starts.prefer(p.turn)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiters--
	}
}

// hasWaiters reports whether calls wait for a session.
func (p *phase) hasWaiters() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters > 0
}

// look is what a call that waits sees: the session if there is one, whether it should wait no
// longer, and when to look again. late says that its time to wait is over. A server that is
// asleep is woken.
func (p *phase) look(late bool) (s *session, changed <-chan struct{}, hopeless bool) {
	p.use()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == StateAsleep {
		signal(p.wake)
	}
	return p.session.Load(), p.changed, p.isHopeless(late)
}

// isHopeless reports whether a call should wait no longer; p.mu is held.
func (p *phase) isHopeless(late bool) bool {
	switch p.state {
	case StateNeedsAuth:
		return true
	case StateFailed:
		return late || time.Since(p.since) < min(failedLeast, p.who.opts.FailedRetry) // a call triggers no attempt yet
	}
	return late && !p.isStarting()
}

// isStarting reports whether an attempt is in progress that is worth waiting for: a
// process that is starting, waits for its turn or came up the last time, or the
// first attempt to reach a URL. p.mu is held.
func (p *phase) isStarting() bool {
	switch p.state {
	case StateInstalling, StateStarting, StateConnecting:
		return true
	case StateFailed:
		return false
	}
	spec := p.who.spec.Load()
	return p.turn != nil || p.lastStartOK && (spec.Command != "" || spec.lazy())
}
