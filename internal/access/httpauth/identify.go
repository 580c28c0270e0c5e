package httpauth

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// identify finds out who makes a request. It returns an error if the credentials are
// not valid, or if there are none and the server requires some.
func (a *Authenticator) identify(r *http.Request) (*access, error) {
	if token, found := bearer(r); found {
		who, err := a.verify(r, token)
		return &access{who: who}, err
	}
	if cookie, err := r.Cookie(cookieName); err == nil && cookie.Value != "" {
		c := &access{cookie: cookie.Value}
		if c.who, err = a.options.Keys.Session(r.Context(), cookie.Value); err != nil {
			return c, err
		}
		if !isSafe(r.Method) && !apikey.SameCSRF(cookie.Value, r.Header.Get(csrfHeader)) {
			return c, errCSRF()
		}
		return c, nil
	}
	required, err := a.KeyRequired(r.Context())
	if err != nil {
		return nil, err
	}
	if required {
		return nil, errNoCredentials
	}
	return local(r)
}

var errNoCredentials = fault.New(fault.NeedsAuth, "Authorization header with Bearer token required").
	WithHint("luanette key create makes a key")

func errCSRF() error {
	return fault.New(fault.Denied, "the request does not repeat the session's CSRF token").
		WithHint("send the csrf_token of GET /api/v1/me as header " + csrfHeader)
}

// KeyRequired reports whether requests need a key or token. None is needed as long as no
// key exists and no issuer is trusted.
func (a *Authenticator) KeyRequired(ctx context.Context) (bool, error) {
	if a.options.Tokens != nil {
		return true, nil
	}
	return a.options.Keys.HasKeys(ctx)
}

// verify returns whom a token identifies: a key of ours, or a JWT of a trusted issuer.
func (a *Authenticator) verify(r *http.Request, token string) (principal.Principal, error) {
	who, err := a.options.Keys.Authenticate(r.Context(), token)
	if err == nil || a.options.Tokens == nil || fault.CodeOf(err) != fault.Denied || strings.Count(token, ".") != 2 {
		return who, err
	}
	return a.options.Tokens.Principal(r)
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
