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

// keeper keeps one upstream connected. A single goroutine connects, tends the
// connection and connects again; everybody else reads what it has published, and
// may wake it. A keeper belongs to one generation of its spec: when the spec
// changes so that the connection does, another keeper takes over, and whatever
// the old one still finds out reaches nobody.
type keeper struct {
	opts       *Options
	name       string
	generation uint64
	log        *slog.Logger
	life       *lifetime
	wake       chan struct{} // somebody needs the server now
	doubt      chan struct{} // it may be gone
	changed    chan struct{} // its tools may have changed
	retry      chan struct{} // there are other credentials
	gone       chan struct{} // closed when nothing of it is left

	mu        sync.Mutex
	spec      Spec
	retired   bool
	state     State
	since     time.Time
	attempt   int  // failures in a row
	pace      int  // failures since somebody last was in a hurry; decides the delay
	sound     bool // it came up when last tried, or is known from then
	err       error
	challenge string
	next      time.Time
	session   *session
	complaint string        // why it is away, as last logged
	told      chan struct{} // closed and replaced with every change of state
	verdict   verdict
	known     record
	list      *listing
	stale     bool
	shown     showing
	stats     Stats
	used      time.Time
	watchers  map[int]func(method string, params json.RawMessage)
	follows   map[string]int // resources followed, with how many follow them
	level     string         // log level asked for, "" for none

	refreshing sync.Mutex // one list at a time
}

// newKeeper makes a keeper that knows nothing yet. run starts it.
func newKeeper(opts *Options, spec Spec, generation uint64) *keeper {
	return &keeper{
		opts: opts, name: spec.Name, spec: spec, generation: generation,
		log:      opts.Log.With("upstream", spec.Name),
		life:     newLifetime(),
		wake:     make(chan struct{}, 1),
		doubt:    make(chan struct{}, 1),
		changed:  make(chan struct{}, 1),
		retry:    make(chan struct{}, 1),
		gone:     make(chan struct{}),
		state:    StateConnecting,
		since:    time.Now(),
		told:     make(chan struct{}),
		list:     &listing{},
		watchers: map[int]func(string, json.RawMessage){},
		follows:  map[string]int{},
	}
}

// recall takes up what the cache knows of the server, unless the generation
// before has told already. A lazy server that is known may sleep; one nothing is
// known of has to introduce itself first.
func (k *keeper) recall() {
	known, found := k.opts.loadRecord(k.currentSpec())
	list := known.tools(k.name)
	k.change(func() {
		if found = found && k.known.Server == ""; found {
			k.known, k.verdict, k.list, k.stale, k.sound = known, known.Verdict, list, true, true
			if known.Verdict.Way.Transport == HTTP {
				k.verdict.Era = wire.Unknown // asking costs little, and servers learn
			}
		}
		if k.spec.lazy() && k.known.Server != "" {
			k.state = StateAsleep
		}
	})
	if found && len(list.tools) > 0 {
		names, _, _ := diff(nil, list.tools)
		k.publish(ToolsRefreshed{Upstream: k.name, ToolCount: len(names), Added: names})
	}
}

// run keeps the upstream until its life ends, but not before after is closed.
func (k *keeper) run(ctx context.Context, after <-chan struct{}) {
	defer close(k.gone)
	k.recall()
	<-after
	for ctx.Err() == nil {
		if k.sleeps() && !k.sleep(ctx) {
			return
		}
		s, err := k.connect(ctx)
		served := false
		if err == nil {
			began := time.Now()
			err = k.tend(ctx, s)
			served = s.useful.Load() || time.Since(began) > time.Second
			k.withdraw(s)
			s.close()
		} else {
			k.change(func() { k.sound = false })
		}
		k.remember(err)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errIdle), k.abandoned():
			k.doze()
		default:
			k.await(ctx, err, served)
		}
	}
}

// remember keeps why an attempt or a connection ended, if it was not on purpose.
func (k *keeper) remember(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err = err; errors.Is(err, errIdle) {
		k.err = nil
	}
}

// sleeps tells whether the server is not to run just now.
func (k *keeper) sleeps() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == StateAsleep
}

// abandoned tells that nobody waits any more for a lazy server that does not come up.
func (k *keeper) abandoned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.spec.lazy() && k.known.Server != "" && time.Since(k.used) > k.opts.ConnectTime
}

// sleep waits until somebody needs the server.
func (k *keeper) sleep(ctx context.Context) bool {
	k.publish(Asleep{Upstream: k.name})
	select {
	case <-k.wake:
		k.change(func() { k.state, k.since, k.sound = StateConnecting, time.Now(), true })
		return true
	case <-ctx.Done():
		return false
	}
}

func (k *keeper) doze() {
	k.change(func() {
		drain(k.wake) // whoever still needs the server sees the change and wakes us again
		k.state, k.since, k.attempt, k.pace = StateAsleep, time.Now(), 0, 0
	})
}

// connect makes one attempt, up to a list of tools.
func (k *keeper) connect(ctx context.Context) (*session, error) {
	k.mu.Lock()
	spec, known, first := k.spec, k.verdict, k.attempt == 0
	k.mu.Unlock()
	if first {
		k.publish(Connecting{Upstream: spec.Name, Target: spec.Target()})
	}
	o := opening{opts: k.opts, spec: spec, note: k.note, hooks: k.hooks()}
	s, found, err := o.open(ctx, known)
	if err != nil {
		return nil, err
	}
	drain(k.doubt) // of an earlier connection
	s.listen(ctx, o.hooks)
	list, err := k.fetch(ctx, s)
	if err != nil {
		s.close()
		return nil, err
	}
	k.present(s, found, list)
	k.restore(ctx, s)
	return s, nil
}

// hooks is what we hear of a connection. Chatter is heard only so much of.
func (k *keeper) hooks() Hooks {
	lines, garbage, news := ration{perSecond: 100}, ration{perSecond: 10}, ration{perSecond: 1000}
	return Hooks{
		Doubt:  func() { signal(k.doubt) },
		Missed: func() { signal(k.changed) },
		Stderr: func(line string) {
			if lines.take(time.Now()) {
				k.publish(Stderr{k.name, line})
				k.log.Debug("stderr", "line", line)
			}
		},
		Garbage: func(text string) {
			if garbage.take(time.Now()) {
				k.publish(Garbage{k.name, text})
				k.log.Debug("not a message", "text", text)
			}
		},
		Broadcast: func(kind string, data json.RawMessage) {
			if news.take(time.Now()) {
				k.publish(newBroadcast(k.name, kind, data))
			}
		},
	}
}

// fetch lists the server's tools. One that has none is still a server; of one
// that refuses to list them we keep those we know.
func (k *keeper) fetch(ctx context.Context, s *session) (*listing, error) {
	list, err := s.list(ctx, k.name, k.opts.ConnectTime)
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return list, err
	}
	if !s.has("tools") && refused.Code == wire.CodeMethodNotFound {
		return &listing{}, nil
	}
	k.mu.Lock()
	list = &listing{tools: k.list.tools, headers: k.list.headers}
	k.mu.Unlock()
	list.drop("tools cannot be listed: %v", refused)
	return list, nil
}

// present makes a session the one that serves.
func (k *keeper) present(s *session, found verdict, list *listing) {
	k.install(list, func() bool {
		drain(k.wake)
		k.session, k.verdict = s, found
		k.state, k.since, k.err, k.next = StateConnected, time.Now(), nil, time.Time{}
		k.used, k.sound, k.complaint = time.Now(), true, ""
		return true
	})
	k.publish(Connected{Upstream: k.name, ToolCount: len(list.tools), Era: s.era.String(), Revision: s.revision})
	k.log.Info("connected", "era", s.era.String(), "tools", len(list.tools), "transport", s.way.Transport)
}

// withdraw ends the service of a session: nobody is given it any more.
func (k *keeper) withdraw(s *session) {
	k.mu.Lock()
	serves := k.session == s
	k.mu.Unlock()
	if !serves {
		return
	}
	k.change(func() {
		k.session, k.stale = nil, true
		k.state, k.since = StateReconnecting, time.Now()
	})
}

// fail ends a session that a caller found broken.
func (k *keeper) fail(s *session, err error) {
	k.withdraw(s)
	select {
	case s.broken <- err:
	default:
	}
}

// await says how an attempt or a connection ended and waits until the next
// attempt is due, or somebody needs the server. A connection that served makes
// the counting of failures begin anew; one that broke at once does not.
func (k *keeper) await(ctx context.Context, err error, served bool) {
	challenge, auth := wantsAuth(err)
	var delay time.Duration
	attempt, level := 0, slog.LevelDebug
	k.change(func() {
		if k.complaint != err.Error() { // the same over and over is no news
			k.complaint, level = err.Error(), slog.LevelInfo
		}
		if served {
			k.attempt, k.pace = 0, 0
		}
		k.attempt++
		k.pace++
		attempt = k.attempt
		k.state, k.since = StateReconnecting, time.Now()
		delay = max(k.opts.Backoff.Delay(k.pace), floor(attempt))
		if auth {
			k.state, k.challenge, delay = StateNeedsAuth, challenge, k.opts.AuthRetry
		}
		k.next = time.Now().Add(delay)
	})
	k.log.Log(ctx, level, "away", "attempt", attempt, "retry_in", delay, "error", err)
	if auth {
		k.publish(NeedsAuth{Upstream: k.name, Error: err.Error(), Challenge: challenge, Hint: fault.HintOf(k.wanting(err, challenge))})
	} else {
		k.publish(Reconnecting{Upstream: k.name, Attempt: attempt, DelayMS: delay.Milliseconds(), Error: err.Error()})
	}
	k.rest(ctx, delay, floor(attempt), auth)
}

// floor is the shortest rest after so many failures in a row: callers in a hurry
// must not turn attempts into a busy loop, nor into a storm of processes.
func floor(attempt int) time.Duration {
	return min(time.Duration(attempt)*20*time.Millisecond, 500*time.Millisecond)
}

// rest waits for delay, or, past least, until somebody wakes us: then the delays
// begin anew with the shortest. Credentials that are wanting make us deaf to that.
func (k *keeper) rest(ctx context.Context, delay, least time.Duration, deaf bool) {
	if clock.Real().Sleep(ctx, min(least, delay)) != nil {
		return
	}
	wake := k.wake
	if deaf {
		wake = nil
	}
	timer := time.NewTimer(max(delay-least, 0))
	defer timer.Stop()
	select {
	case <-wake:
		k.change(func() { k.pace = 0 })
	case <-k.retry:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// change alters what others see, and tells those who wait for it.
func (k *keeper) change(alter func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	alter()
	close(k.told)
	k.told = make(chan struct{})
}

// publish tells the house, unless another generation has taken over.
func (k *keeper) publish(p event.Payload) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.retired {
		k.opts.Events.Publish(p)
	}
}

// retire makes the keeper end. It returns at once; done tells when it has.
func (k *keeper) retire() {
	k.mu.Lock()
	k.retired = true
	k.mu.Unlock()
	k.life.end(errRemoved)
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
