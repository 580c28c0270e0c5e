package httpauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// identify finds out who makes a request. It returns an error if the credentials are
// not valid, or if there are none and the server requires some.
func (a *Authenticator) identify(r *http.Request) (*access, error) {
	if token, found := bearer(r); found {
		c, err := a.verify(r, token)
		if err == nil {
			err = a.checkOwner(r, c)
		}
		return c, err
	}
	if session := cookie.In(r, a.options.Browsers).Get(cookie.Session); session != "" {
		c := &access{cookie: session}
		var err error
		if c.who, err = a.sessions(session).Session(r.Context(), session); err != nil {
			return c, err
		}
		if !isSafe(r.Method) && !apikey.SameCSRF(session, r.Header.Get(csrfHeader)) {
			return c, errCSRF()
		}
		return c, a.checkOwner(r, c)
	}
	required, err := a.KeyRequired(r.Context())
	if err != nil {
		return nil, err
	}
	if required {
		return nil, errNoCredentials
	}
	return a.local(r)
}

var errNoCredentials = fault.New(fault.NeedsAuth, "Authorization header with Bearer token required").
	WithHint("sign in with `luanette login URL`, or send a key; `luanette key create` makes one")

func errCSRF() error {
	return fault.New(fault.Denied, "the request does not repeat the session's CSRF token").
		WithHint("send the csrf_token of GET /api/v1/me as header " + csrfHeader)
}

// KeyRequired reports whether requests need a key or token. None is needed as long as no
// key exists, no issuer is trusted and nobody can sign in.
func (a *Authenticator) KeyRequired(ctx context.Context) (bool, error) {
	if a.options.Tokens != nil || a.options.People != nil {
		return true, nil
	}
	return a.options.Keys.HasKeys(ctx)
}

// verify returns whom a token identifies: a key of ours, a client that acts for a person,
// or a JWT of a trusted issuer.
func (a *Authenticator) verify(r *http.Request, token string) (*access, error) {
	if a.options.People != nil && strings.HasPrefix(token, authserver.AccessPrefix) {
		who, err := a.options.People.Token(r.Context(), token)
		return &access{who: who, token: token}, err
	}
	who, err := a.options.Keys.Authenticate(r.Context(), token)
	if err != nil && a.options.Tokens != nil && fault.CodeOf(err) == fault.Denied && strings.Count(token, ".") == 2 {
		if who, err = a.options.Tokens.Principal(r.Context(), token); err == nil {
			err = a.options.Keys.Check(who) // of somebody who signs in here too, and was blocked
		}
	}
	if fault.CodeOf(err) == fault.Denied && owner.IsSecret(token) {
		err = a.errOtherSecret(r)
	}
	return &access{who: who}, err
}

// sessions returns the sessions that a cookie is of: those of people, or those of keys.
func (a *Authenticator) sessions(cookie string) sessions {
	if a.options.People != nil && people.IsSession(cookie) {
		return a.options.People
	}
	return a.options.Keys
}

// bearer returns the bearer token of a request, and whether there is one.
func bearer(r *http.Request) (string, bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(kind, "Bearer") && token != ""
}

// isPreflight recognizes a browser's CORS preflight request, which carries no
// credentials. Handlers answer it without doing anything else.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func isSafe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// isLocal reports whether the request came in on a loopback address. A server without
// keys serves only those, whatever address it listens on.
func isLocal(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

const (
	failuresLogged  = 20 // refusals of one address in a minute that are logged
	failuresAllowed = 20 // different wrong keys of one address in a minute, and logins with one of them
	failuresTracked = 10_000
)

// remote is the address a request comes from.
func (a *Authenticator) remote(r *http.Request) string { return a.options.Browsers.Proxies.Client(r) }

// countRefusal counts a refused request and reports whether to log it.
func (a *Authenticator) countRefusal(r *http.Request) bool {
	return a.refusals.add(netguard.Source(a.remote(r)), "", time.Now()) <= failuresLogged
}

// failures counts by address, key and minute.
type failures struct {
	mu     sync.Mutex
	minute time.Time
	counts map[string]map[string]int
}

// add counts a failure with a key and returns how many there were.
func (f *failures) add(from, key string, now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now = now.Truncate(time.Minute); !now.Equal(f.minute) || len(f.counts) > failuresTracked {
		f.minute, f.counts = now, map[string]map[string]int{}
	}
	keys := f.counts[from]
	if keys == nil {
		keys = map[string]int{}
		f.counts[from] = keys
	}
	keys[key]++
	return keys[key]
}

// blocked reports whether an address tried too many different keys, or this one too
// often, and when it may try again. One wrong key that a program repeats does not keep
// others at the same address from logging in.
func (f *failures) blocked(from, key string, now time.Time) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	minute, keys := now.Truncate(time.Minute), f.counts[from]
	if !minute.Equal(f.minute) || len(keys) < failuresAllowed && keys[key] < failuresAllowed {
		return 0, false
	}
	return minute.Add(time.Minute).Sub(now), true
}

// keyID identifies a key in counters without keeping it.
func keyID(token string) string {
	hash := apikey.HashOf(token)
	return string(hash[:8])
}

// reject refuses a request to a route that needs a scope, and logs it.
func (a *Authenticator) reject(w http.ResponseWriter, r *http.Request, route *principal.Route, err error) {
	if code := fault.CodeOf(err); code == fault.NeedsAuth || code == fault.Denied {
		if a.countRefusal(r) {
			a.options.Log.WarnContext(r.Context(), "auth_rejected", "event", "auth_rejected", "method", r.Method, "path", r.URL.Path, "remote", a.remote(r), "error", err)
		}
		a.challenge(w, r, route.Scope, err)
	}
	status := httpjson.StatusOf(err)
	if _, shown := bearer(r); status == http.StatusForbidden && shown && route.Bearer && !isScopeError(err) {
		status = http.StatusUnauthorized
	}
	route.Fail(w, r, status, err)
}

// scopeError refuses a caller that is known and lacks the scope.
type scopeError struct{ error }

func (t scopeError) Unwrap() error { return t.error }

func isScopeError(err error) bool {
	var known scopeError
	return errors.As(err, &known)
}

// challenge sets the WWW-Authenticate header.
func (a *Authenticator) challenge(w http.ResponseWriter, r *http.Request, scope principal.Scope, err error) {
	parts := []string{}
	switch _, shown := bearer(r); {
	case isScopeError(err):
		parts = append(parts, `error="insufficient_scope"`)
	case shown:
		parts = append(parts, `error="invalid_token"`)
	}
	if tokens := a.options.Tokens; tokens != nil {
		parts = append(parts, fmt.Sprintf("resource_metadata=%q", tokens.Metadata(r)))
		if name := tokens.ScopeName(scope); scope != "" && name != "" {
			parts = append(parts, fmt.Sprintf("scope=%q", name))
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parts, ", ")))
}
