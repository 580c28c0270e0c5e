package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// callError makes the error that a caller sees, as a fault. An error that the
// server sent stays in the chain unchanged. about is the tool, or empty.
func (c *connection) callError(ctx context.Context, err error, about string) error {
	spec := c.spec.Load()
	subject := spec.Name
	if about != "" {
		subject += "." + about
	}
	var answered *wire.Error
	var status *statusError
	var own *fault.Error
	switch {
	case errors.As(err, &answered):
		return fault.Wrap(fault.Upstream, answered, "%s", subject)
	case errors.Is(err, wire.ErrTooLarge):
		return fault.Wrap(fault.Limit, err, "%s", subject).
			WithHint("ask for less, for example for a page or a range; an answer may have %d bytes", c.opts.MaxMessage)
	case errors.Is(err, errNoProgress):
		return fault.Wrap(fault.Timeout, err, "%s", subject).
			WithHint("the limit is %v without progress; raise the timeout of upstream %s if the tool needs longer", spec.timeout(), spec.Name)
	case errors.Is(err, errMaxTime):
		return fault.Wrap(fault.Timeout, err, "%s", subject).WithHint("the limit is %v in total", spec.maxTime())
	case ctx.Err() != nil:
		return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "%s", subject)
	case errors.As(err, &status) && status.auth():
		return c.needsAuthError(err, status.Challenge)
	case errors.As(err, &own):
		return err
	case errors.As(err, &status) && status.Code < 500:
		return fault.Wrap(fault.Upstream, err, "%s", subject)
	case errors.Is(err, ErrNotSent):
		return fault.Wrap(fault.Unavailable, err, "%s", subject).WithHint("the call had no effect and can be repeated")
	}
	if why := context.Cause(c.life.ctx); why != nil { //nolint:contextcheck // asks why the connection ended
		return fault.New(fault.Unavailable, "%s: %v during the call, its outcome is unknown", subject, why).
			WithHint("find out whether it took effect before you repeat it")
	}
	return fault.Wrap(fault.Unavailable, err, "%s: the connection was lost during the call, its outcome is unknown", subject).
		WithHint("find out whether it took effect before you repeat it")
}

// unreachableError says why the server cannot be reached and when the next attempt
// is, to a caller that has waited since then.
func (c *connection) unreachableError(since time.Time) error {
	now := c.phase.now()
	if now.state == StateNeedsAuth {
		return c.needsAuthError(now.err, now.challenge)
	}
	cause := now.err
	if cause == nil {
		cause = errors.New("still connecting")
	}
	details := map[string]any{"upstream": c.name, "state": now.state, "attempt": now.attempt, "next_try": now.next}
	if now.state == StateFailed {
		return fault.Wrap(fault.Unavailable, textOnly{cause}, "upstream %s did not start, %d times in a row", c.name, now.attempt).
			WithHint("%s", c.failedHint(now)).WithDetails(details)
	}
	next := "an attempt is in progress"
	if in := time.Until(now.next); in > 0 {
		next = fmt.Sprintf("the next attempt is in %v", in.Round(time.Millisecond))
	}
	if hint := hintOf(now.err); hint != "" {
		next = hint + "; " + next
	}
	waited := time.Since(since).Round(10 * time.Millisecond)
	return fault.Wrap(fault.Unavailable, textOnly{cause}, "upstream %s is not connected, waited %v", c.name, waited).
		WithHint("%s; call again, or look at its status", next).WithDetails(details)
}

// failedHint says what to do about a server in StateFailed.
func (c *connection) failedHint(now situation) string {
	repair := cmp.Or(hintOf(now.err), "repair what the error says")
	return fmt.Sprintf("%s, or change its settings; then Retry on the page connects at once, otherwise the next attempt is in %v",
		repair, max(time.Until(now.next), 0).Round(time.Second))
}

// gaveUpError is for a caller who stopped waiting for the server.
func (c *connection) gaveUpError(ctx context.Context, since time.Time) error {
	waited := time.Since(since).Round(10 * time.Millisecond)
	return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "%s: waited %v for the upstream (%s)", c.name, waited, c.waitingText()).
		WithHint("call again with more time, or look at its status")
}

// notFoundError says how to get a program that is missing.
func notFoundError(command string) error {
	hint := "install " + command + ", or give its full path as command"
	if packages.IsRunner(command) {
		hint = packages.InstallHint(command)
	}
	return fault.Wrap(fault.Unavailable, exec.ErrNotFound, "cannot start %s", command).WithHint("%s", hint)
}

// needsAuthError says that the server requires credentials.
func (c *connection) needsAuthError(err error, challenge string) error {
	f, ok := loginFix(err)
	if !ok && c.owner != "" { // it says what the owner has to do
		ok = errors.As(err, &f) && (f.Code == fault.NeedsAuth && f.Hint != "" || f.Code == fault.Denied)
	}
	if !ok {
		f = fault.Wrap(fault.NeedsAuth, textOnly{err}, "upstream %s requires credentials", c.name).
			WithHint("set a bearer token or headers for upstream %s", c.name)
	}
	if challenge != "" && len(f.Details) == 0 { // details of a login say where the person logs in
		f = f.WithDetails(map[string]any{"upstream": c.name, "challenge": challenge})
	}
	return f
}

// textOnly is an error's text without its chain: why a connection failed must not
// look like the answer to a call.
type textOnly struct{ err error }

func (e textOnly) Error() string {
	if e.err == nil {
		return "reason unknown"
	}
	return e.err.Error()
}

// isAuthError reports whether err means that credentials are missing, with the
// server's challenge.
func isAuthError(err error) (challenge string, yes bool) {
	var status *statusError
	if errors.As(err, &status) && status.auth() {
		return status.Challenge, true
	}
	var f *fault.Error
	return "", errors.As(err, &f) && f.Code == fault.NeedsAuth
}
