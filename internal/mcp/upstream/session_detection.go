package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// detectEra tries the modern handshake, and the legacy one if the modern one is
// refused or ignored.
func (a *connectAttempt) detectEra(ctx context.Context, e endpoint, s *session) (*session, error) {
	if p, ok := s.transport.(processTransport); ok {
		return a.detectProcessEra(ctx, e, s, p)
	}
	modern, cancel := context.WithTimeoutCause(ctx, 2*a.opts.ProbeTimeout, errNoHandshake)
	err := s.discover(modern)
	cancel()
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil || noOtherEraHelps(err):
		return nil, s.abandon(err)
	}
	if err = s.initialize(ctx); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

var errNoHandshake = errors.New("no answer to the handshake")

// noOtherEraHelps reports whether a handshake in the other era would fail too.
func noOtherEraHelps(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.auth()
	}
	return errors.Is(err, ErrNotSent) && !isAnswer(err)
}

// processTransport is the transport of a child process.
type processTransport interface {
	AwaitRead(ctx context.Context) // returns when the process has read what was sent
	Stderr() string
}

// detectProcessEra finds out which era a process speaks. It never ends a process
// that may still be starting:
//   - as long as the process has not read the modern probe, nothing is decided;
//   - one that answers the probe with an error gets initialize;
//   - one that has read the probe and does not answer gets initialize too, and
//     may still answer either of them;
//   - only one that ended after it had read the probe is started again, for
//     initialize alone.
func (a *connectAttempt) detectProcessEra(ctx context.Context, e endpoint, s *session, p processTransport) (*session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.beginModern()
	modern := s.answerOf(ctx, s.sendDiscover)
	ignored := a.awaitIgnored(ctx, s, p)
	var first answer
	select {
	case first = <-modern:
	case <-ignored:
		return a.detectLate(ctx, e, s, modern)
	}
	switch {
	case first.err == nil:
		return s, s.acceptModern(first.result)
	case ctx.Err() != nil:
		return nil, s.abandon(first.err)
	case diedOfProbe(first.err):
		return a.restartLegacy(ctx, e, s)
	case errors.Is(first.err, errProcess):
		return nil, s.abandon(first.err)
	}
	err := s.initialize(ctx)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() == nil && (isAnswer(err) || errors.Is(err, errProcess)):
		return a.restartLegacy(ctx, e, s) // it does not recover from the probe
	}
	return nil, s.abandon(err)
}

// detectLate sends initialize to a process that has not answered the modern probe,
// and takes what it answers. A modern answer counts more: a server that was slow
// answers both.
func (a *connectAttempt) detectLate(ctx context.Context, e endpoint, s *session, modern <-chan answer) (*session, error) {
	s.beginLegacy()
	legacy := s.answerOf(ctx, s.sendInitialize)
	var first, second answer
	select {
	case first = <-modern:
		if first.err == nil {
			return s, s.acceptModern(first.result)
		}
		second = <-legacy
	case second = <-legacy:
		first = lateAnswer(ctx, modern, second, a.opts.ProbeTimeout/10)
		if first.err == nil {
			return s, s.acceptModern(first.result)
		}
	}
	err := second.err
	if err == nil {
		err = s.acceptLegacy(ctx, second.result)
	}
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, s.abandon(fmt.Errorf("%w%w", context.Cause(ctx), errIgnoredProbe))
	case errors.Is(err, errProcess):
		return a.restartLegacy(ctx, e, s)
	}
	return nil, s.abandon(err)
}

// lateAnswer is the answer to the modern probe after the one to initialize. A server
// that refused initialize is given all its time, another one grace.
func lateAnswer(ctx context.Context, modern <-chan answer, legacy answer, grace time.Duration) answer {
	limit := ctx
	if legacy.err == nil {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, grace)
		defer cancel()
	}
	select {
	case a := <-modern:
		return a
	case <-limit.Done():
		return answer{err: errNoHandshake}
	}
}

// errIgnoredProbe marks the error of a process that read the probe and then
// answered nothing any more. The next attempt sends initialize alone.
var errIgnoredProbe = hiddenError{}

// hiddenError only marks another error.
type hiddenError struct{}

func (hiddenError) Error() string { return "" }

// awaitIgnored returns a channel that is closed when the process has read the probe
// and not answered it for some time.
func (a *connectAttempt) awaitIgnored(ctx context.Context, s *session, p processTransport) <-chan struct{} {
	ignored := make(chan struct{})
	s.life.run(func(context.Context) {
		ctx, release := s.life.bind(ctx)
		defer release()
		p.AwaitRead(ctx)
		if clock.Real().Sleep(ctx, a.opts.ProbeTimeout) == nil {
			close(ignored)
		}
	})
	return ignored
}

// answer is how a request of the handshake ended.
type answer struct {
	result json.RawMessage
	err    error
}

// answerOf sends a request in the background.
func (s *session) answerOf(ctx context.Context, send func(context.Context) (json.RawMessage, error)) <-chan answer {
	answered := make(chan answer, 1)
	s.life.run(func(context.Context) {
		result, err := send(ctx)
		answered <- answer{result, err}
	})
	return answered
}

// restartLegacy starts the server again and sends initialize alone.
func (a *connectAttempt) restartLegacy(ctx context.Context, e endpoint, s *session) (*session, error) {
	s.close()
	s, err := a.dial(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := s.initialize(ctx); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

// isAnswer reports whether err is one that the server sent.
func isAnswer(err error) bool {
	var answered *wire.Error
	return errors.As(err, &answered)
}

// diedOfProbe reports whether the process ended after it had read the request.
func diedOfProbe(err error) bool {
	return errors.Is(err, errProcess) && !errors.Is(err, ErrNotSent)
}

// startTimeoutError is why an attempt ends that takes too long.
type startTimeoutError struct{ limit time.Duration }

func (e *startTimeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

func isStartTimeout(err error) bool {
	var timeout *startTimeoutError
	return errors.As(err, &timeout)
}

// abandon closes a session whose handshake failed, and adds to the error what the
// process wrote to its standard error. The reason why a process ended has it already.
func (s *session) abandon(err error) error {
	p, isProcess := s.transport.(processTransport)
	s.close()
	if !isProcess || errors.Is(err, errProcess) {
		return err
	}
	if text := p.Stderr(); text != "" {
		return fmt.Errorf("%w; its standard error: %s", err, text)
	}
	return fmt.Errorf("%w; it wrote nothing to its standard error", err)
}
