// Package jwt is an OAuth resource server: it knows who has a token that others
// made, a JSON Web Token of an issuer that the configuration names, and tells clients
// who makes them. Requests pass the MCP SDK's check of bearer tokens; signature,
// issuer, audience and times are go-oidc's to see to. Issuers are asked for their
// public keys, and for nothing else; a token is never passed on.
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

// Issuer makes tokens.
type Issuer struct {
	URL      string // as it names itself in tokens
	Audience string // for whom tokens must be made
	Keys     string // where its public keys are; empty: its metadata says so
	// Scopes are what words of the token's scope open; nil: chat, mcp and read open
	// what they are called.
	Scopes map[string][]principal.Scope
	Org    string // the only organisation its tokens are for; empty: any
}

// Server is the resource server. It is safe for concurrent use.
type Server struct {
	issuers []Issuer
	client  *http.Client

	mu    sync.Mutex
	known map[string]*oidc.IDTokenVerifier // by issuer, once its keys were found
	asked map[string]*question             // by issuer, while it is asked where they are
}

// New makes a server that takes the tokens of issuers. The client fetches metadata and
// keys; it is to guard where it connects to.
func New(issuers []Issuer, client *http.Client) *Server {
	patient := *client
	patient.Transport = &calm{inner: cmp.Or(client.Transport, http.DefaultTransport), last: map[string]answer{}}
	return &Server{issuers: issuers, client: &patient, known: map[string]*oidc.IDTokenVerifier{}, asked: map[string]*question{}}
}

// leeway is how far an issuer's clock may be behind ours.
const leeway = 30 * time.Second

// Principal is who the token of a request stands for. fault.NeedsAuth when it is not
// good, fault.Unavailable when that cannot be found out.
//
// What it opens is not asked of the SDK, which wants every scope of a list: here one of
// several scope values may do, and keys pass the same check of scopes.
func (s *Server) Principal(r *http.Request) (principal.Principal, error) {
	v := verdict{header: http.Header{}, who: principal.Anonymous()}
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

// verdict stands in for the answer to a request, so that refusals are worded by the
// check of scopes, as those of keys are.
type verdict struct {
	header   http.Header
	said     strings.Builder
	err      error
	admitted bool
	who      principal.Principal
}

func (v *verdict) Header() http.Header            { return v.header }
func (v *verdict) Write(text []byte) (int, error) { return v.said.Write(text) }
func (v *verdict) WriteHeader(int)                {}

// About somebody, in what the SDK keeps beside what it knows.
const (
	aboutName = "name"
	aboutUser = "user"
	aboutOrg  = "org"
)

// principalOf is who the SDK let in. The end of its rights allows for clocks too, or it
// would be let in and cut off at once.
func principalOf(info *auth.TokenInfo) principal.Principal {
	about := func(what string) string { text, _ := info.Extra[what].(string); return text }
	p := principal.Principal{ID: info.UserID, Name: about(aboutName), User: about(aboutUser), Org: about(aboutOrg), Expires: info.Expiration.Add(leeway)}
	for _, s := range info.Scopes {
		p.Scopes = append(p.Scopes, principal.Scope(s))
	}
	return p
}
