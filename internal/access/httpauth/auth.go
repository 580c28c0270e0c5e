// Package httpauth authenticates HTTP requests by API key, token or browser session and
// checks that the caller has the scope a route needs. Handlers find the caller in the
// request's context. It also serves the routes for logging in and out and for managing
// keys.
package httpauth

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
)

// Options configure an Authenticator. All but Keys are optional.
type Options struct {
	Keys     *apikey.Store
	Tokens   Tokens            // verifies tokens of other issuers; nil: only our own keys are accepted
	People   People            // who sign in; nil: nobody does
	Browsers netguard.Browsers // whose pages may send requests, and the trusted proxies
	Peers    *owner.Peers      // whom a server without keys serves; nil: guests
	Secret   secret.Text       // the owner's; zero: nobody signs in by a link
	// OnLogin is called for logins, allowed or not, and for logouts.
	OnLogin func(ctx context.Context, action, from string, allowed bool)
	Log     *slog.Logger
	// Has names what not every server has and its page asks for: "people", "music".
	Has []string
}

// Tokens verifies tokens of other issuers.
type Tokens interface {
	// Principal returns whom a token identifies; fault.NeedsAuth if it is not valid.
	Principal(ctx context.Context, token string) (principal.Principal, error)
	// Metadata is the URL of the protected resource metadata, which names the issuers.
	Metadata(r *http.Request) string
	// ScopeName is what clients request from the issuer to get a scope; empty if unknown.
	ScopeName(scope principal.Scope) string
}

// People knows the sessions of people, and the tokens of clients that act for them.
type People interface {
	sessions
	// Token returns whom a client acts for; fault.Denied if its token is not good.
	Token(ctx context.Context, token string) (principal.Principal, error)
	// Orgs lists the organisations of a person.
	Orgs(person string) []string
	// RolesOf lists the roles of a person in an organisation.
	RolesOf(person, org string) []string
	// ChooseOrg continues a session in another organisation; fault.NotFound if the person
	// is not in it.
	ChooseOrg(ctx context.Context, cookie, org string) (principal.Principal, error)
	// Watch calls changed after something may have ended, until stop is called.
	Watch(changed func()) (stop func())
}

// sessions are browser sessions, by cookie.
type sessions interface {
	Session(ctx context.Context, cookie string) (principal.Principal, error)
	EndSession(ctx context.Context, cookie string) error
}

// Authenticator checks who makes a request and what they may do. It is safe for
// concurrent use. Close it when done.
type Authenticator struct {
	options   Options
	refusals  failures // all that are refused, to limit the log
	wrongKeys failures // of logins
	rates     queue.RateLimiter
	codes     owner.Codes
	unwatch   func()
	watching  context.Context // of the background, until Close
	stop      context.CancelFunc
	work      sync.WaitGroup

	mu      sync.Mutex
	running map[*access]struct{} // requests whose caller's key or session may end
}

// New makes an Authenticator. It watches the keys until Close.
func New(o Options) *Authenticator {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnLogin == nil {
		o.OnLogin = func(context.Context, string, string, bool) {}
	}
	if o.Peers == nil {
		o.Peers = &owner.Peers{}
	}
	a := &Authenticator{options: o, running: map[*access]struct{}{}}
	a.watching, a.stop = context.WithCancel(context.Background())
	changed := func() { a.work.Go(a.cancelRevoked) }
	a.unwatch = o.Keys.Watch(changed)
	if o.People != nil {
		keys, people := a.unwatch, o.People.Watch(changed)
		a.unwatch = func() { keys(); people() }
	}
	return a
}

// Close stops watching the keys.
func (a *Authenticator) Close() {
	a.unwatch()
	a.stop()
	a.work.Wait()
}

// Mux serves routes, each to callers with the scope it needs. It panics if a route does not
// say who may use it.
func (a *Authenticator) Mux(routes []principal.Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		if route.Scope == "" {
			panic("the route " + route.Pattern + " has no scope")
		}
		mux.Handle(route.Pattern, &handler{a, route})
	}
	return mux
}

// handler serves a route to callers with the scope it needs.
type handler struct {
	auth  *Authenticator
	route principal.Route
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, route := h.auth, &h.route
	w.Header()["X-Content-Type-Options"] = nosniff
	if callerIsUnknown(r, route) {
		if !a.answerPage(w, r, route) {
			route.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Anonymous())))
		}
		return
	}
	c, err := a.identify(r)
	c, err = a.ignoreKey(r, route, c, err)
	if a.refuseKeyless(w, r, route, err) || a.answerPage(w, r, route) {
		return
	}
	if err == nil {
		err = a.admit(r, route, c)
	}
	if err != nil && route.Scope != principal.Open {
		a.reject(w, r, route, err)
		return
	}
	if err != nil {
		c = &access{who: principal.Anonymous()}
	}
	ctx, end := a.begin(principal.WithShared(r.Context(), &c.who), c)
	defer end()
	route.ServeHTTP(w, r.WithContext(ctx))
}

// answerPage answers a request that a page of another origin made in somebody's browser if it is
// refused, or asks what the page may send, and reports whether it did. Pages of this machine that
// are not listed may send what needs no such question, and read nothing: a server without keys may
// take them for its owner.
func (a *Authenticator) answerPage(w http.ResponseWriter, r *http.Request, route *principal.Route) bool {
	if route.AnyOrigin || route.ChecksOrigin {
		return false
	}
	origin, err := a.options.Browsers.Origin(r)
	if err != nil {
		route.Fail(w, r, http.StatusForbidden, err)
		return true
	}
	return a.options.Browsers.Lists(origin) && netguard.AnswerPage(w, r, origin)
}

// admit refuses a known caller that may not use a route now.
func (a *Authenticator) admit(r *http.Request, route *principal.Route, c *access) error {
	if c.who.IsGuest() && !route.Guests {
		return a.errGuest()
	}
	if route.Scope == principal.Open {
		return nil
	}
	if err := c.authorize(r, route.Scope); err != nil {
		return err
	}
	return a.checkRate(c.who)
}

// callerIsUnknown reports whether nobody asks who the caller is, or the handler does.
func callerIsUnknown(r *http.Request, route *principal.Route) bool {
	return isPreflight(r) || route.Authenticates
}

// nosniff is shared by all responses.
var nosniff = []string{"nosniff"}

// checkRate refuses a request beyond the caller's rate limit.
func (a *Authenticator) checkRate(who principal.Principal) error {
	for _, l := range who.Limited() {
		if after, ok := a.rates.Allow(l.ID, l.Rate, time.Now()); !ok {
			return principal.Exceeded{What: "requests", Of: l.Title, Most: l.Rate, Per: "minute", After: after}.Fault()
		}
	}
	return nil
}

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
