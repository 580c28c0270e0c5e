package httpauth

import (
	"context"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// access is the right by which one request is served.
type access struct {
	who    principal.Principal
	cookie string                  // the browser session; empty for a key or token
	token  string                  // of a client that acts for a person; empty otherwise
	cancel context.CancelCauseFunc // ends the request; nil for local callers, whose right cannot end
}

// authorize refuses a request whose caller lacks the scope, or that is about another
// organisation or user.
func (c *access) authorize(r *http.Request, scope principal.Scope) error {
	org := r.PathValue("org")
	of := ""
	if org != "" {
		of = " of the organisation " + org
	} else {
		org = c.who.Org
	}
	if !c.who.May(scope, org) {
		return scopeError{fault.New(fault.Denied, "%s does not have the scope %s%s", c.who.Title(), scope, of).
			WithHint("use a key with the scope %s%s", scope, of)}
	}
	if user := r.PathValue("user"); user != "" && c.who.User != "" && user != c.who.User {
		return scopeError{fault.New(fault.Denied, "%s may act for %s only", c.who.Title(), c.who.User)}
	}
	return nil
}

// begin registers a request so that it is cancelled when its key expires or is revoked,
// or when its session ends. Streams would otherwise go on forever.
func (a *Authenticator) begin(ctx context.Context, c *access) (_ context.Context, end func()) {
	if c.who.ID == principal.LocalID {
		return ctx, func() {}
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	stopTimer := func() bool { return true }
	if !c.who.Expires.IsZero() {
		stopTimer = time.AfterFunc(time.Until(c.who.Expires), func() { c.cancel(errExpired) }).Stop
	}
	a.mu.Lock()
	a.running[c] = struct{}{}
	a.mu.Unlock()
	return ctx, func() {
		a.mu.Lock()
		delete(a.running, c)
		a.mu.Unlock()
		stopTimer()
		c.cancel(context.Canceled)
	}
}

var errExpired = fault.New(fault.Denied, "the key has expired").WithHint("create a new one: luanette key create")

var errElsewhere = fault.New(fault.Denied, "the session continues in another organisation").WithHint("send the request again")

// cancelRevoked cancels the running requests whose keys are no longer valid.
func (a *Authenticator) cancelRevoked() {
	a.mu.Lock()
	all := make([]*access, 0, len(a.running))
	for c := range a.running {
		all = append(all, c)
	}
	a.mu.Unlock()
	for _, c := range all {
		if err := a.recheck(c); fault.CodeOf(err) == fault.Denied || fault.CodeOf(err) == fault.NeedsAuth {
			c.cancel(err)
		}
	}
}

// recheck returns why a running request would be refused now.
func (a *Authenticator) recheck(c *access) (err error) {
	switch {
	case c.who.IsGuest(): // until the first key
		var required bool
		if required, err = a.KeyRequired(a.watching); err == nil && required {
			err = errNoCredentials
		}
	case c.token != "":
		_, err = a.options.People.Token(a.watching, c.token)
	case people.IsSession(c.cookie):
		var now principal.Principal
		if now, err = a.sessions(c.cookie).Session(a.watching, c.cookie); err == nil && now.ID != c.who.ID {
			err = errElsewhere
		}
	default:
		err = a.options.Keys.Check(c.who)
	}
	return err
}

// cancelSession cancels the running requests of a browser session.
func (a *Authenticator) cancelSession(cookie string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.running {
		if c.cookie == cookie {
			c.cancel(errExpired)
		}
	}
}
