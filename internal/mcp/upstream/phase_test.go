package upstream

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

func newTestPhase(spec Spec) *phase {
	o := Options{Backoff: backoff.Policy{First: time.Second, Max: time.Minute}, FailedAfter: 1}
	return newConnection(newShared(o), spec, 1).phase
}

// A program that ends the same way several times is given up for a while: calls fail at once,
// until somebody asks for an attempt.
func TestPhaseOfAProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	p := newTestPhase(Spec{Settings: Settings{Command: "c"}})
	for n := range finalRepetitions {
		if now := p.now(); n > 0 && (now.state != StateReconnecting || now.attempt != n) {
			t.Fatalf("after %d failures: %+v", n, now)
		}
		if f := p.failed(fmt.Errorf("exit status 1, process %d", n), false); f.changed != (n == 0) || f.final != (n == finalRepetitions-1) {
			t.Errorf("failure %d: a new reason: %v, final: %v", n, f.changed, f.final)
		}
	}
	if _, _, hopeless := p.look(false); p.now().state != StateFailed || !hopeless {
		t.Errorf("%+v, hopeless: %v", p.now(), hopeless)
	}
	if f := p.failed(errors.New("exit status 1, process 9"), false); f.state != StateFailed || f.final {
		t.Errorf("the next failure: %+v", f) // which is not warned of again
	}
	p.retryNow()
	if _, _, hopeless := p.look(false); p.now().state != StateReconnecting || hopeless {
		t.Errorf("after somebody asked: %+v, hopeless: %v", p.now(), hopeless)
	}
	if f := p.failed(errors.New("lost"), true); f.attempt != 1 || f.state != StateReconnecting {
		t.Errorf("after a session that was of use: %+v", f)
	}
}

// A program that is gone for a few seconds, as while it is replaced, is not given up, however
// many calls ask for it.
func TestPhaseOfAProgramThatIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newConnection(newShared(Options{}), Spec{Settings: Settings{Command: "c"}}, 1).phase
		begin := time.Now()
		for time.Since(begin) < 4*time.Second {
			f := p.failed(errors.New("no such file"), false)
			if f.state != StateReconnecting {
				t.Fatalf("after %v: %+v", time.Since(begin), f)
			}
			signal(p.wake)
			p.awaitRetry(t.Context(), f)
		}
		if now := p.now(); now.attempt > 12 {
			t.Errorf("%d attempts", now.attempt)
		}
	})
}

// Attempts are rare while credentials are missing, and a login ends the wait.
func TestPhaseWithoutCredentials(t *testing.T) {
	t.Parallel()
	p := newTestPhase(Spec{Settings: Settings{URL: "http://h"}})
	f := p.failed(&statusError{Code: 401, Challenge: "Bearer"}, false)
	if f.state != StateNeedsAuth || f.challenge != "Bearer" || f.delay != p.who.opts.AuthRetry {
		t.Errorf("%+v", f)
	}
	signal(p.wake) // of a call, which does not help
	p.retryLogin()
	if p.now().state != StateConnecting || len(p.retry) != 1 {
		t.Errorf("after a login: %+v, %d", p.now(), len(p.retry))
	}
	p.awaitRetry(t.Context(), f) // ends at once
	if f = p.failed(errors.New("refused"), false); f.challenge != "" || f.state != StateReconnecting {
		t.Errorf("%+v", f)
	}
}

// A caller ends the wait for the next attempt, but not sooner than the least delay.
func TestPhaseIsWokenByACaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newTestPhase(Spec{Settings: Settings{URL: "http://h"}})
		f := p.failed(errors.New("refused"), false)
		signal(p.wake)
		began := time.Now()
		p.awaitRetry(t.Context(), f)
		if waited := time.Since(began); waited != f.least || f.least >= f.delay {
			t.Errorf("waited %v, at least %v, at most %v", waited, f.least, f.delay)
		}
	})
}

// Calls see the session as long as it is the current one, and wake a server that sleeps.
func TestPhaseOfASession(t *testing.T) {
	t.Parallel()
	p := newTestPhase(Spec{Settings: Settings{URL: "http://h", Start: Lazy}})
	s := &session{}
	_, changed, _ := p.look(false)
	p.connected(s)
	<-changed
	p.lost(&session{})
	if got, _, _ := p.look(false); got != s || p.now().state != StateConnected {
		t.Errorf("another session was lost: %v, %+v", got, p.now())
	}
	p.lost(s)
	if got, _, _ := p.look(false); got != nil || p.now().state != StateReconnecting {
		t.Errorf("it was lost: %v, %+v", got, p.now())
	}
	p.sleep(nil)
	if p.look(false); len(p.wake) != 1 {
		t.Error("the server sleeps although a call needs it")
	}
}

// A server that hangs is said to hang, as long as attempts time out.
func TestPhaseOfASilentServer(t *testing.T) {
	t.Parallel()
	p := newTestPhase(Spec{Settings: Settings{URL: "http://h"}})
	silent := &silentError{since: time.Now()}
	p.failed(silent, true)
	if err := p.attemptFailed(&startTimeoutError{time.Second}); !errors.Is(err, silent) {
		t.Errorf("it timed out: %v", err)
	}
	refused := fault.New(fault.Unavailable, "refused")
	if err := p.attemptFailed(refused); !errors.Is(err, refused) {
		t.Errorf("it was refused: %v", err)
	}
}
