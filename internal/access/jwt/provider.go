package jwt

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
)

// Provider is an OpenID provider at which people sign in. It is safe for concurrent use.
type Provider struct {
	issuer, client string
	http           *http.Client

	mu    sync.Mutex // held while the metadata is fetched
	known *metadata
}

// metadata is what is known about a provider.
type metadata struct {
	Endpoints
	provider *oidc.Provider
}

// verifier checks tokens for an audience.
func (m *metadata) verifier(audience string) *oidc.IDTokenVerifier {
	return m.provider.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms, Now: now})
}

// Endpoints is the metadata of a provider.
type Endpoints struct {
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	UserInfo    string   `json:"userinfo_endpoint"`
	EndSession  string   `json:"end_session_endpoint"`
	TellsIssuer bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	ClientAuth  []string `json:"token_endpoint_auth_methods_supported"`
}

// NewProvider returns the provider with an issuer, for one client of it. The HTTP client
// fetches metadata and keys; it must restrict which addresses it connects to.
func NewProvider(issuer, clientID string, client *http.Client) *Provider {
	caching := *client
	caching.Transport = &cachingTransport{inner: cmp.Or(client.Transport, http.DefaultTransport), last: map[string]cachedResponse{}}
	return &Provider{issuer: issuer, client: clientID, http: &caching}
}

// Endpoints returns the provider's metadata. Its issuer is exactly that of the
// configuration.
func (p *Provider) Endpoints(ctx context.Context) (Endpoints, error) {
	known, err := p.load(ctx)
	if err != nil {
		return Endpoints{}, err
	}
	return known.Endpoints, nil
}

func (p *Provider) load(ctx context.Context) (*metadata, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	soon, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.http), fetchTime)
	defer cancel()
	provider, err := oidc.NewProvider(soon, p.issuer)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "fetch the metadata of %s", p.issuer).WithHint("%s", cmp.Or(certpool.Hint(err), "check the issuer in [identity]"))
	}
	var fresh metadata
	if err := provider.Claims(&fresh.Endpoints); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the metadata of %s", p.issuer)
	}
	fresh.provider = provider
	p.known = &fresh
	return p.known, nil
}

// Claims are the claims of a token that was verified.
type Claims map[string]json.RawMessage

// Text returns a claim that is text; empty if it is not.
func (c Claims) Text(name string) (text string) {
	_ = json.Unmarshal(c[name], &text) // any other type is no text
	return text
}

// Words returns a claim that is a list of texts, or one text of several words.
func (c Claims) Words(name string) []string { return claimValues(c[name]) }

// List returns a claim that is a list of texts, or missing. ok is false for any other type: one
// text may be one name with spaces, or several names.
func (c Claims) List(name string) (list []string, ok bool) {
	raw, there := c[name]
	return list, !there || json.Unmarshal(raw, &list) == nil
}

// True reports whether a claim is true.
func (c Claims) True(name string) (is bool) {
	_ = json.Unmarshal(c[name], &is) // any other type is not true
	return is
}

// VerifyID returns the claims of an ID token for our client with the nonce of the sign-in.
// An empty nonce is for a token that came without one, from the token endpoint.
func (p *Provider) VerifyID(ctx context.Context, raw, nonce string) (Claims, error) {
	claims, token, err := p.verifyOwn(ctx, raw)
	if err != nil {
		return nil, err
	}
	switch {
	case nonce != "" && token.Nonce != nonce:
		return nil, p.refusal("is for another sign-in")
	case token.Subject == "":
		return nil, p.refusal("has no subject")
	case len(token.Audience) > 1 && claims.Text("azp") != p.client:
		return nil, p.refusal("is for another client")
	case claims["events"] != nil:
		return nil, p.refusal("is not an ID token")
	}
	return claims, nil
}

// logoutEvent is the event of a logout token.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// VerifyLogout returns the claims of a token by which the provider says that a session, or
// all of a person, has ended.
func (p *Provider) VerifyLogout(ctx context.Context, raw string) (Claims, error) {
	claims, _, err := p.verifyOwn(ctx, raw)
	if err != nil {
		return nil, err
	}
	var events map[string]json.RawMessage
	if json.Unmarshal(claims["events"], &events) != nil || events[logoutEvent] == nil || claims["nonce"] != nil || claims.Text("sid") == "" && claims.Text("sub") == "" {
		return nil, p.refusal("is not a logout token")
	}
	return claims, nil
}

// verifyOwn verifies a token for our client.
func (p *Provider) verifyOwn(ctx context.Context, raw string) (Claims, *oidc.IDToken, error) {
	known, err := p.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	claims, token, err := p.verify(ctx, known.verifier(p.client), raw)
	if err == nil {
		err = p.checkTimes(token)
	}
	return claims, token, err
}

func (p *Provider) verify(ctx context.Context, check *oidc.IDTokenVerifier, raw string) (Claims, *oidc.IDToken, error) {
	token, err := check.Verify(oidc.ClientContext(ctx, p.http), raw)
	if err != nil {
		return nil, nil, p.refusal("is not good")
	}
	var claims Claims
	if err := token.Claims(&claims); err != nil {
		return nil, nil, p.refusal("cannot be read")
	}
	return claims, token, nil
}

func (p *Provider) refusal(what string) error {
	return fault.New(fault.Denied, "the token of %s %s", p.issuer, what).WithHint("sign in again")
}

// SendsSecretInBody reports whether the provider takes the client's secret only in the
// body of a request.
func (e Endpoints) SendsSecretInBody() bool {
	return len(e.ClientAuth) > 0 && !slices.Contains(e.ClientAuth, "client_secret_basic") && slices.Contains(e.ClientAuth, "client_secret_post")
}
