// Package httpauth stands before every HTTP door: it finds out who asks, by key,
// token or a browser's session, and lets through who may. Behind it the context
// says who it is. It also answers what is about keys themselves: logging in and
// out, who one is, and making and revoking keys.
package httpauth

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/principal"
)

// Options are the gate's choices. All but Ring may be left out.
type Options struct {
	Ring     *apikey.Store
	Tokens   Tokens            // of somebody else's making; nil: only our own keys are known
	Browsers netguard.Browsers // whose pages may log in
	// OnLogin is told of logins, good and bad, and logouts; nil tells nobody.
	OnLogin func(ctx context.Context, action, from string, allowed bool)
	Log     *slog.Logger
}

// Tokens knows those that somebody else makes.
type Tokens interface {
	// Principal is who the token of a request stands for; fault.NeedsAuth: nobody.
	Principal(r *http.Request) (principal.Principal, error)
	// Metadata is where clients read who makes them.
	Metadata(r *http.Request) string
	// ScopeName is what to ask for there to be given a scope; empty: nobody can say.
	ScopeName(scope principal.Scope) string
}

// Authenticator is safe for concurrent use. Close it when done.
type Authenticator struct {
	options  Options
	guesses  tries
	rates    queue.RateLimiter
	unwatch  func()
	watching context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu    sync.Mutex
	under map[*visit]struct{} // requests under way by those whose rights may end
}

// New makes a gate.
func New(o Options) *Authenticator {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnLogin == nil {
		o.OnLogin = func(context.Context, string, string, bool) {}
	}
	g := &Authenticator{options: o, under: map[*visit]struct{}{}}
	g.watching, g.stop = context.WithCancel(context.Background())
	g.unwatch = o.Ring.Watch(func() { g.work.Go(g.expel) })
	return g
}

// Close ends the watch over keys.
func (g *Authenticator) Close() {
	g.unwatch()
	g.stop()
	g.work.Wait()
}

// Mux serves routes, each behind the check for what it needs.
func (g *Authenticator) Mux(routes []principal.Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route.Pattern, &checked{g, route})
	}
	return mux
}

// checked lets those through who may have what the route needs.
type checked struct {
	gate  *Authenticator
	route principal.Route
}

func (c *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, route := c.gate, &c.route
	w.Header()["X-Content-Type-Options"] = nosniff
	if preflight(r) {
		route.Handler.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Anonymous())))
		return
	}
	v, err := g.identify(r)
	if err == nil && route.Scope != "" {
		err = v.admit(r, route.Scope)
	}
	if err == nil && route.Scope != "" {
		err = g.pace(v.who)
	}
	if err != nil && route.Scope != "" {
		g.turnAway(w, r, route.Scope, err)
		return
	}
	if err != nil {
		v = &visit{who: principal.Anonymous()}
	}
	ctx, leave := g.enter(principal.WithShared(r.Context(), &v.who), v)
	defer leave()
	*r = *r.WithContext(ctx) // nobody before us has anything left to do with it, and a copy is large
	route.Handler.ServeHTTP(w, r)
}

// nosniff is shared by all answers.
var nosniff = []string{"nosniff"}

// pace refuses what is more than somebody may ask in a minute.
func (g *Authenticator) pace(who principal.Principal) error {
	if after, ok := g.rates.Allow(who.ID, who.Limits.Rate, time.Now()); !ok {
		return principal.Exceeded{What: "requests", Of: who.Title(), Most: who.Limits.Rate, Per: "minute", After: after}.Fault()
	}
	return nil
}

// visit is one request of somebody.
type visit struct {
	who    principal.Principal
	cookie string         // of the browser's session; empty: it showed a key or token
	life   cancel.Context // of what it asked, where its rights may end
}

// identify finds out who asks. An error means that something was shown that is
// not good, or nothing where something is needed.
func (g *Authenticator) identify(r *http.Request) (*visit, error) {
	if token, shown := bearer(r); shown {
		who, err := g.know(r, token)
		return &visit{who: who}, err
	}
	if cookie, err := r.Cookie(cookieName); err == nil && cookie.Value != "" {
		v := &visit{cookie: cookie.Value}
		if v.who, err = g.options.Ring.Session(r.Context(), cookie.Value); err != nil {
			return v, err
		}
		if !safe(r.Method) && !apikey.SameCSRF(cookie.Value, r.Header.Get(csrfHeader)) {
			return v, fault.New(fault.Denied, "the request does not repeat the session's CSRF token").
				WithHint("send the csrf_token of GET /api/v1/me as header " + csrfHeader)
		}
		return v, nil
	}
	shut, err := g.KeyRequired(r.Context())
	switch {
	case err != nil:
		return nil, err
	case !shut && local(r):
		return &visit{who: principal.Local()}, nil
	}
	return nil, errNothingShown
}

var errNothingShown = fault.New(fault.NeedsAuth, "Authorization header with Bearer token required").
	WithHint("luanette key create makes a key")

// KeyRequired tells whether it takes a key at all.
func (g *Authenticator) KeyRequired(ctx context.Context) (bool, error) {
	if g.options.Tokens != nil {
		return true, nil
	}
	return g.options.Ring.HasKeys(ctx)
}

// know is who has a token: a key of ours, or what others made.
func (g *Authenticator) know(r *http.Request, token string) (principal.Principal, error) {
	who, err := g.options.Ring.Authenticate(r.Context(), token)
	if err == nil || g.options.Tokens == nil || fault.CodeOf(err) != fault.Denied || strings.Count(token, ".") != 2 {
		return who, err
	}
	return g.options.Tokens.Principal(r)
}

// bearer is the token of a request, and whether there is one.
func bearer(r *http.Request) (string, bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(kind, "Bearer") && token != ""
}

// preflight tells a browser's question whether a page may ask at all, with which
// it sends nothing to know anybody by. Doors answer it without doing anything.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// local tells whether the request came to an address that only this machine can
// reach. What is open is open to nobody else, whatever was said at the start.
func local(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

// admit refuses what the scope is not enough for, and what is another's.
func (v *visit) admit(r *http.Request, scope principal.Scope) error {
	org := r.PathValue("org")
	of := ""
	if org != "" {
		of = " of the organisation " + org
	} else {
		org = v.who.Org
	}
	if !v.who.May(scope, org) {
		return tooLittle{fault.New(fault.Denied, "%s is not for this", v.who.Title()).WithHint("it takes the scope %s%s", scope, of)}
	}
	if user := r.PathValue("user"); user != "" && v.who.User != "" && user != v.who.User {
		return tooLittle{fault.New(fault.Denied, "%s is for %s only", v.who.Title(), v.who.User)}
	}
	return nil
}

// enter notes that a request is under way, so that it ends when the rights behind
// it do: streams would go on for ever.
func (g *Authenticator) enter(ctx context.Context, v *visit) (context.Context, func()) {
	if v.who.ID == principal.LocalID {
		return ctx, func() {}
	}
	v.life.Begin(ctx)
	expired := func() {}
	if !v.who.Expires.IsZero() {
		timer := time.AfterFunc(time.Until(v.who.Expires), func() { v.life.Cancel(errOver) })
		expired = func() { timer.Stop() }
	}
	g.mu.Lock()
	g.under[v] = struct{}{}
	g.mu.Unlock()
	return &v.life, func() {
		g.mu.Lock()
		delete(g.under, v)
		g.mu.Unlock()
		expired()
		v.life.End()
	}
}

var errOver = fault.New(fault.Denied, "the key is over").WithHint("ask for a new one: luanette key create")

// expel ends the requests of those who may no longer.
func (g *Authenticator) expel() {
	g.mu.Lock()
	all := make([]*visit, 0, len(g.under))
	for v := range g.under {
		all = append(all, v)
	}
	g.mu.Unlock()
	for _, v := range all {
		if _, err := g.options.Ring.Current(g.watching, v.who); fault.CodeOf(err) == fault.Denied {
			v.life.Cancel(err)
		}
	}
}

// end ends what is under way in a browser's session.
func (g *Authenticator) end(cookie string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for v := range g.under {
		if v.cookie == cookie {
			v.life.Cancel(errOver)
		}
	}
}
