// Package jwt is an OAuth resource server. It verifies JSON Web Tokens of the issuers
// in the configuration, and informs clients which issuers there are. The MCP SDK checks
// the bearer token of a request, and go-oidc checks signature, issuer, audience and
// times. Issuers are only asked for their metadata and public keys. A token is never
// passed on.
package jwt

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Issuer is an authorization server whose tokens are accepted.
type Issuer struct {
	URL      string // as it names itself in tokens
	Audience string // the audience that tokens must have
	Keys     string // address of its public keys; empty: taken from its metadata
	// Scopes are the scopes that each value of the token's scope grants. nil: chat,
	// mcp and read grant the scopes of the same name.
	Scopes map[string][]principal.Scope
	Org    string // the only organisation of its tokens; empty: any
}

// Server is the resource server. It is safe for concurrent use.
type Server struct {
	issuers []Issuer // whose tokens are verified here
	listed  []Issuer // that the metadata names: these, after our own authorization server
	own     string   // our public address; empty: unknown
	client  *http.Client

	mu    sync.Mutex
	known map[string]*oidc.IDTokenVerifier // by issuer, after its keys were found
	asked map[string]*keyRequest           // by issuer, while the request runs
}

// WithOwn returns the server with our own authorization server first in its metadata. Its
// tokens are not JWTs, and verified elsewhere.
func (s *Server) WithOwn(issuer, resource string) *Server {
	s.listed, s.own = append([]Issuer{{URL: issuer, Audience: resource}}, s.listed...), issuer
	return s
}

// New returns a server that accepts the tokens of issuers. The client fetches metadata
// and keys; it must restrict which addresses it connects to.
func New(issuers []Issuer, client *http.Client) *Server {
	caching := *client
	caching.Transport = &cachingTransport{inner: cmp.Or(client.Transport, http.DefaultTransport), last: map[string]cachedResponse{}}
	return &Server{issuers: issuers, listed: issuers, client: &caching, known: map[string]*oidc.IDTokenVerifier{}, asked: map[string]*keyRequest{}}
}

// leeway is how far an issuer's clock may be behind ours, and ahead how far it may be
// ahead.
const (
	leeway = 30 * time.Second
	ahead  = 5 * time.Minute
)

// Principal returns the principal of a request's token. The error is fault.NeedsAuth
// if the token is not valid, and fault.Unavailable if that cannot be checked.
// || The SDK does not check scopes, because it requires every scope of a list. Here
// one of several values may be enough, and API keys pass the same check of scopes.
func (s *Server) Principal(r *http.Request) (principal.Principal, error) {
	v := sdkResponse{header: http.Header{}, who: principal.Anonymous()}
	check := func(ctx context.Context, token string, _ *http.Request) (info *auth.TokenInfo, err error) {
		if info, v.err = s.verify(ctx, token); v.err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, v.err)
		}
		return info, nil
	}
	admit := func(_ http.ResponseWriter, r *http.Request) {
		v.who, v.admitted = principalOf(auth.TokenInfoFromContext(r.Context())), true
	}
	auth.RequireBearerToken(check, &auth.RequireBearerTokenOptions{ClockSkew: leeway})(http.HandlerFunc(admit)).ServeHTTP(&v, r)
	if v.err == nil && !v.admitted {
		v.err = fault.New(fault.NeedsAuth, "the token is refused: %s", strings.TrimSpace(v.said.String()))
	}
	return v.who, v.err
}

// sdkResponse receives the SDK's response to a refused request. The caller writes the
// response itself, the same way as for API keys.
type sdkResponse struct {
	header   http.Header
	said     strings.Builder
	err      error
	admitted bool
	who      principal.Principal
}

func (v *sdkResponse) Header() http.Header            { return v.header }
func (v *sdkResponse) Write(text []byte) (int, error) { return v.said.Write(text) }
func (v *sdkResponse) WriteHeader(int)                {}

// The keys of what is added to the SDK's token information.
const (
	aboutName = "name"
	aboutUser = "user"
	aboutOrg  = "org"
)

// principalOf returns the principal of a verified token. Its expiry allows for clock
// skew too; otherwise a token could be accepted and then expire at once.
func principalOf(info *auth.TokenInfo) principal.Principal {
	about := func(what string) string { text, _ := info.Extra[what].(string); return text }
	p := principal.Principal{ID: info.UserID, Name: about(aboutName), User: about(aboutUser), Org: about(aboutOrg), Expires: info.Expiration.Add(leeway)}
	for _, s := range info.Scopes {
		p.Scopes = append(p.Scopes, principal.Scope(s))
	}
	return p
}
