package httpauth

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
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
	WithHint("luanette key create makes a key")

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
		if who, err = a.options.Tokens.Principal(r); err == nil {
			err = a.options.Keys.Check(who) // of somebody who signs in here too, and was blocked
		}
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
