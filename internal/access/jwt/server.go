// Package jwt is an OAuth resource server. It verifies JSON Web Tokens of the issuers
// in the configuration, and informs clients which issuers there are. go-oidc checks
// signature, issuer, audience and times. Issuers are only asked for their metadata and
// public keys. A token is never passed on.
package jwt

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

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

// Principal returns the principal of a token. The error is fault.NeedsAuth if the token is not
// valid, and fault.Unavailable if that cannot be checked. It contains nothing of the token.
func (s *Server) Principal(ctx context.Context, token string) (principal.Principal, error) {
	issuer, ok := s.issuerOf(token)
	if !ok {
		return principal.Anonymous(), fault.New(fault.NeedsAuth, "the token's issuer is unknown").WithHint("use a token of %s", s.names())
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	check, err := s.verifier(ctx, issuer)
	if err != nil {
		return principal.Anonymous(), err
	}
	var fetchErr error
	good, err := check.Verify(context.WithValue(ctx, fetchErrorKey{}, &fetchErr), token)
	switch {
	case fetchErr != nil:
		return principal.Anonymous(), fetchErr
	case err != nil:
		return principal.Anonymous(), issuer.refusal(err)
	}
	if err := issuer.checkTimes(good); err != nil {
		return principal.Anonymous(), err
	}
	if err := issuer.checkKind(token, good); err != nil {
		return principal.Anonymous(), err
	}
	return issuer.principal(good)
}
