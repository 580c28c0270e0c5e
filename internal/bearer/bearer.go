// Package bearer reads tokens that others made: JSON Web Tokens of issuers that the
// configuration names. Issuers are asked for their public keys, and for nothing
// else; a token is never passed on.
package bearer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fault"
)

// Issuer makes tokens.
type Issuer struct {
	URL      string // as it names itself in tokens
	Audience string // for whom tokens must be made
	Keys     string // where its public keys are; empty: its metadata says so
	// Scopes are what words of the token's scope open; nil: chat, mcp and read open
	// what they are called.
	Scopes map[string][]access.Scope
	Org    string // the only organisation its tokens are for; empty: any
}

// Verifier knows the issuers. It is safe for concurrent use.
type Verifier struct {
	issuers []Issuer
	client  *http.Client

	mu    sync.Mutex
	known map[string]*oidc.IDTokenVerifier // by issuer, once its keys were found
	asked map[string]*question             // by issuer, while it is asked where they are
}

// question is put to an issuer once for all who need the answer, so that one that
// is slow to answer holds up nobody else's tokens.
type question struct {
	answered chan struct{} // closed when check or err is there
	check    *oidc.IDTokenVerifier
	err      error
}

// New makes a verifier. The client fetches metadata and keys; it is to guard where
// it connects to.
func New(issuers []Issuer, client *http.Client) *Verifier {
	return &Verifier{issuers: issuers, client: client, known: map[string]*oidc.IDTokenVerifier{}, asked: map[string]*question{}}
}

// algorithms are those with a public and a private key. With none, or with one
// shared key, anybody who can check a token could make one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// fetchTime bounds how long an issuer may take to tell its keys.
const fetchTime = 10 * time.Second

// Principal is who a token stands for. fault.Denied when it is not good.
func (v *Verifier) Principal(ctx context.Context, token string) (access.Principal, error) {
	issuer, ok := v.issuerOf(token)
	if !ok {
		return access.Nobody(), fault.New(fault.Denied, "the token is of nobody we know")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	check, err := v.check(ctx, issuer)
	if err != nil {
		return access.Nobody(), err
	}
	good, err := check.Verify(oidc.ClientContext(ctx, v.client), token)
	if err != nil {
		return access.Nobody(), fault.New(fault.Denied, "the token is not good: %v", err)
	}
	var claims struct {
		Scope    string          `json:"scope"`
		Scp      json.RawMessage `json:"scp"`
		Name     string          `json:"name"`
		ClientID string          `json:"client_id"`
	}
	if err := good.Claims(&claims); err != nil {
		return access.Nobody(), fault.New(fault.Denied, "the token's claims cannot be read: %v", err)
	}
	if good.Subject == "" {
		return access.Nobody(), fault.New(fault.Denied, "the token says of nobody whose it is")
	}
	p := access.Principal{
		ID: "oauth:" + issuer.URL + "#" + good.Subject, Name: claims.Name, User: good.Subject, Org: issuer.Org,
		Scopes: issuer.scopes(append(strings.Fields(claims.Scope), words(claims.Scp)...)), Expires: good.Expiry,
	}
	if p.Name == "" {
		p.Name = good.Subject
	}
	return p, nil
}

// issuerOf finds the issuer that a token claims to be of; that it is will be seen.
func (v *Verifier) issuerOf(token string) (Issuer, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Issuer{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return Issuer{}, false
	}
	at := slices.IndexFunc(v.issuers, func(i Issuer) bool { return i.URL == claims.Issuer })
	if at < 0 {
		return Issuer{}, false
	}
	return v.issuers[at], true
}

// check is what checks an issuer's tokens. Keys are kept, and asked for again when
// a token was made with one that is not known.
func (v *Verifier) check(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	known, asked := v.known[i.URL], v.asked[i.URL]
	if known == nil && asked == nil {
		asked = &question{answered: make(chan struct{})}
		v.asked[i.URL] = asked
		go v.ask(context.WithoutCancel(ctx), i, asked)
	}
	v.mu.Unlock()
	if known != nil {
		return known, nil
	}
	select {
	case <-asked.answered:
		return asked.check, asked.err
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "ask %s for its keys", i.URL)
	}
}

// ask finds out how an issuer's tokens are checked. It is asked again by the next
// who needs to know when it did not answer.
func (v *Verifier) ask(ctx context.Context, i Issuer, q *question) {
	q.check, q.err = v.find(ctx, i)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.asked, i.URL)
	if q.err == nil {
		v.known[i.URL] = q.check
	}
	close(q.answered)
}

func (v *Verifier) find(ctx context.Context, i Issuer) (*oidc.IDTokenVerifier, error) {
	config := &oidc.Config{ClientID: i.Audience, SupportedSigningAlgs: algorithms}
	lasting := oidc.ClientContext(ctx, v.client)
	if i.Keys != "" {
		return oidc.NewVerifier(i.URL, oidc.NewRemoteKeySet(lasting, i.Keys), config), nil
	}
	ctx, cancel := context.WithTimeout(lasting, fetchTime)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, i.URL)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "ask %s for its keys", i.URL).
			WithHint("where its metadata is not in the usual place, say where its keys are: jwks in luanette.toml")
	}
	return provider.VerifierContext(lasting, config), nil
}

// scopes are what the words of a token open.
func (i Issuer) scopes(words []string) (scopes []access.Scope) {
	for _, word := range words {
		opened := i.Scopes[word]
		if i.Scopes == nil && slices.Contains(access.Usual, access.Scope(word)) {
			opened = []access.Scope{access.Scope(word)}
		}
		for _, s := range opened {
			if !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// words reads a claim that is a list of words, or one text of them.
func words(raw json.RawMessage) (list []string) {
	var text string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	_ = json.Unmarshal(raw, &text) // what is neither opens nothing
	return strings.Fields(text)
}
