package upstream

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// silentError is why a session ends whose server does not answer health checks.
type silentError struct {
	since  time.Time // of the last message
	server string    // the transport
}

// Error says for how long the server has not answered.
func (e *silentError) Error() string {
	return fmt.Sprintf("not answering for %.0f s", time.Since(e.since).Seconds())
}

// hint says what to do about it.
func (e *silentError) hint() string {
	hint := "the server is " + e.Error() + ": it hangs, or is stopped or unreachable; restart it"
	if isZMQ(e.server) {
		hint += ". A backend must answer heartbeats also while it works; docs/backends.md"
	}
	return hint
}

// hintOf is the hint about a lost connection, or empty.
func hintOf(err error) string {
	var silent *silentError
	if errors.As(err, &silent) {
		return silent.hint()
	}
	return fault.HintOf(err)
}

// logReason is the text by which the log tells whether the reason of a failure is new.
func logReason(err error) string {
	var silent *silentError
	if errors.As(err, &silent) {
		return "not answering"
	}
	return err.Error()
}

// stillSilent returns the error of the session that ended because the server did not
// answer, as long as attempts to connect again get no answer either. Otherwise it is err.
func (c *connection) stillSilent(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var silent *silentError
	if errors.As(c.err, &silent) && timedOut(err) {
		return silent
	}
	return err
}

// timedOut reports whether an attempt ended because there was no answer.
func timedOut(err error) bool {
	return fault.CodeOf(err) == fault.Timeout || errors.Is(err, os.ErrDeadlineExceeded) ||
		isStartTimeout(err) || errors.Is(err, errNoProgress)
}

// abort fails the active calls with the reason why the session is about to be closed, if
// the transport can.
func (s *session) abort(why error) error {
	if t, ok := s.transport.(interface{ Abort(error) }); ok {
		t.Abort(errors.New(why.Error())) // its text grows with time
	}
	return why
}

// answersWhileBusy reports whether the server must answer health checks while calls are
// active.
func (s *session) answersWhileBusy() bool {
	t, ok := s.transport.(interface{ AnswersWhileBusy() bool })
	return ok && t.AnswersWhileBusy()
}

// lastMessage is when the last message of the server arrived.
func (s *session) lastMessage() time.Time {
	if t, ok := s.transport.(interface{ LastReceived() time.Time }); ok {
		return t.LastReceived()
	}
	return time.Unix(0, s.lastReceived.Load())
}

// describe returns the era and the revision for people. A backend has no era, and its
// revision is that of its own protocol.
func (s *session) describe() (era, revision string) {
	if t, ok := s.transport.(interface{ Protocol() string }); ok {
		return "", t.Protocol()
	}
	return s.era.String(), s.revision
}

// eraText is the era of a detected server for people.
func (d detection) eraText() string {
	if d.Era == wire.Unknown || isZMQ(d.Endpoint.Transport) {
		return ""
	}
	return d.Era.String()
}
