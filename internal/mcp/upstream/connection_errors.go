package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// callError gives an error the shape in which it leaves the room. Errors the
// server sent stay in the chain as they came.
func (c *connection) callError(ctx context.Context, err error, what string) error {
	spec := c.currentSpec()
	doing := spec.Name
	if what != "" {
		doing += "." + what
	}
	var answered *wire.Error
	var status *statusError
	var own *fault.Error
	switch {
	case errors.As(err, &answered):
		return fault.Wrap(fault.Upstream, answered, "%s", doing)
	case errors.Is(err, wire.ErrTooLarge):
		return fault.Wrap(fault.Limit, err, "%s", doing).
			WithHint("ask for less, for example for a page or a range; an answer may have %d bytes", c.opts.MaxMessage)
	case errors.Is(err, errNoProgress):
		return fault.Wrap(fault.Timeout, err, "%s", doing).
			WithHint("the limit is %v without progress; raise the timeout of upstream %s if the tool needs longer", spec.timeout(), spec.Name)
	case errors.Is(err, errMaxTime):
		return fault.Wrap(fault.Timeout, err, "%s", doing).WithHint("the limit is %v in all", spec.maxTime())
	case ctx.Err() != nil:
		return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "%s", doing)
	case errors.As(err, &status) && status.auth():
		return c.needsAuthError(err, status.Challenge)
	case errors.As(err, &own):
		return err
	case errors.As(err, &status) && status.Code < 500:
		return fault.Wrap(fault.Upstream, err, "%s", doing)
	case errors.Is(err, ErrNotSent):
		return fault.Wrap(fault.Unavailable, err, "%s", doing).WithHint("nothing has happened; the call can be made again")
	}
	return fault.Wrap(fault.Unavailable, err, "%s: the connection was lost while the call ran, its outcome is unknown", doing).
		WithHint("find out whether it took effect before making the call again")
}

// unreachableError says that the server cannot be reached, why, and when we try again, to
// somebody who has waited for it since then.
func (c *connection) unreachableError(since time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == StateNeedsAuth {
		return c.needsAuthError(c.err, c.challenge)
	}
	cause := c.err
	if cause == nil {
		cause = errors.New("still connecting")
	}
	next := "a try is under way"
	if in := time.Until(c.next); in > 0 {
		next = fmt.Sprintf("the next try is in %v", in.Round(time.Millisecond))
	}
	waited := time.Since(since).Round(10 * time.Millisecond)
	return fault.Wrap(fault.Unavailable, textOnly{cause}, "upstream %s is away, waited %v for it", c.spec.Name, waited).
		WithHint("%s; call again, or look at its status", next).
		WithDetails(map[string]any{"upstream": c.spec.Name, "state": c.state, "attempt": c.attempt, "next_try": c.next})
}

// needsAuthError says that the server wants credentials.
func (c *connection) needsAuthError(err error, challenge string) error {
	f, cured := loginFix(err)
	if !cured {
		f = fault.Wrap(fault.NeedsAuth, textOnly{err}, "upstream %s wants credentials", c.name).
			WithHint("set a bearer token or headers for upstream %s", c.name)
	}
	if challenge != "" {
		f = f.WithDetails(map[string]any{"upstream": c.name, "challenge": challenge})
	}
	return f
}

// textOnly is an error's text without its chain: why a connection failed must not
// look like the answer to a call.
type textOnly struct{ err error }

func (p textOnly) Error() string {
	if p.err == nil {
		return "no reason known"
	}
	return p.err.Error()
}

// isAuthError tells whether err means that credentials are wanting, and what the
// server said of them.
func isAuthError(err error) (challenge string, yes bool) {
	var status *statusError
	if errors.As(err, &status) && status.auth() {
		return status.Challenge, true
	}
	var f *fault.Error
	return "", errors.As(err, &f) && f.Code == fault.NeedsAuth
}
