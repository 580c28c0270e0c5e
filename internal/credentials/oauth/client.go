package oauth

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/store/db"
)

// Methods to authenticate at the token endpoint.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
	authKey   = "private_key_jwt"
)

// client is our registration at one authorization server. The secret is stored here
// only if the server issued it; a configured secret is looked up when it is used.
type client struct {
	ID         string    `json:"id"`
	Secret     string    `json:"secret,omitempty"`
	Auth       string    `json:"auth"`
	Configured bool      `json:"configured,omitempty"`
	Expires    time.Time `json:"expires,omitzero"` // of the secret
}

// clientFor returns the client to use: the configured one, our metadata document if
// the server fetches it, the stored registration, or a new registration.
func (l *Logins) clientFor(ctx context.Context, f *fetcher, s Server, at description, redirect string) (client, error) {
	switch {
	case s.Settings.ClientID != "":
		return configured(s.Settings, at), nil
	case l.options.MetadataURL != "" && at.FetchesMetadata:
		return client{ID: l.options.MetadataURL, Auth: authNone}, nil
	}
	known, err := l.loadClient(ctx, s.Name, at.Issuer, redirect)
	if err != nil || known.ID != "" {
		return known, err
	}
	if at.Register == "" {
		return client{}, fault.New(fault.Config, "%s does not register new clients", at.Issuer).
			WithHint("register Luanette there by hand and set upstreams.%s.oauth.client_id; the redirect URI is %s", s.Name, redirect)
	}
	made, err := l.register(ctx, f, at, redirect)
	if err != nil {
		return client{}, fault.Wrap(fault.CodeOf(err), err, "register at %s", at.Issuer)
	}
	return made, l.saveClient(ctx, s.Name, at.Issuer, redirect, made)
}

func configured(s Settings, at description) client {
	c := client{ID: s.ClientID, Auth: authNone, Configured: true}
	switch {
	case s.ClientKey != "":
		c.Auth = authKey
	case s.ClientSecret == "":
	case slices.Contains(at.TokenAuth, authPost) && !slices.Contains(at.TokenAuth, authBasic):
		c.Auth = authPost
	default:
		c.Auth = authBasic
	}
	return c
}

// registration is the request to register a client (RFC 7591).
type registration struct {
	Name      string   `json:"client_name"`
	URI       string   `json:"client_uri,omitempty"`
	Redirects []string `json:"redirect_uris,omitempty"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types,omitempty"`
	TokenAuth string   `json:"token_endpoint_auth_method"`
	Kind      string   `json:"application_type"`
}

// Document returns our client metadata, for authorization servers that fetch it from
// the address that is our client id.
func (o Options) Document(redirects []string) any {
	name := o.ClientName
	if name == "" {
		name = "Luanette"
	}
	return struct {
		ID string `json:"client_id"`
		registration
	}{o.MetadataURL, newRegistration(name, redirects, authNone)}
}

func newRegistration(name string, redirects []string, auth string) registration {
	r := registration{
		Name: name, Redirects: redirects, TokenAuth: auth,
		Grants: []string{"authorization_code", "refresh_token"}, Responses: []string{"code"}, Kind: "web",
	}
	if len(redirects) == 0 {
		r.Grants, r.Responses = []string{grantDevice, "refresh_token"}, nil
	}
	local := func(raw string) bool {
		u, err := url.Parse(raw)
		return err == nil && netguard.IsLoopback(u.Hostname())
	}
	if len(redirects) == 0 || slices.ContainsFunc(redirects, local) {
		r.Kind = "native"
	}
	return r
}

// register registers a client at a server with open registration.
func (l *Logins) register(ctx context.Context, f *fetcher, at description, redirect string) (client, error) {
	auth := proofFor(at.TokenAuth)
	var redirects []string
	if redirect != "" {
		redirects = []string{redirect}
	}
	body, err := json.Marshal(newRegistration(l.options.ClientName, redirects, auth))
	if err != nil {
		return client{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Register, bytes.NewReader(body))
	if err != nil {
		return client{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	status, answer, err := f.do(request)
	if err != nil {
		return client{}, err
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return client{}, refusal(request.URL.Host, status, answer)
	}
	var made registered
	if err := json.Unmarshal(answer, &made); err != nil || made.ID == "" {
		return client{}, fault.New(fault.Upstream, "%s registered the client without an id", request.URL.Host)
	}
	return made.client(auth), nil
}

// proofFor returns the authentication method to use with a server that supports the
// given ones.
func proofFor(taken []string) string {
	switch {
	case len(taken) == 0 || slices.Contains(taken, authNone):
		return authNone
	case slices.Contains(taken, authBasic):
		return authBasic
	default:
		return authPost
	}
}

// registered is the response to a registration.
type registered struct {
	ID      string `json:"client_id"`
	Secret  string `json:"client_secret"`
	Auth    string `json:"token_endpoint_auth_method"`
	Expires int64  `json:"client_secret_expires_at"`
}

// client returns the registered client; auth is the requested authentication method.
func (made registered) client(auth string) client {
	c := client{ID: made.ID, Secret: made.Secret, Auth: made.Auth}
	if made.Expires > 0 {
		c.Expires = time.Unix(made.Expires, 0)
	}
	switch {
	case c.Secret == "":
		c.Auth = authNone
	case c.Auth != authBasic && c.Auth != authPost:
		c.Auth = auth
		if auth == authNone {
			c.Auth = authBasic
		}
	}
	return c
}

func (l *Logins) loadClient(ctx context.Context, upstream, issuer, redirect string) (client, error) {
	var c client
	var sealed []byte
	var expires time.Time
	err := l.db.QueryRow(ctx, `SELECT expires, sealed FROM oauth_clients WHERE upstream = $1 AND issuer = $2 AND redirect = $3`,
		upstream, issuer, redirect).Scan(db.Micros(&expires), &sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return c, nil
	case err != nil:
		return c, err
	case !expires.IsZero() && !expires.After(l.options.Clock.Now()):
		return c, nil
	}
	return c, l.box.Open(sealed, &c, "client", upstream, issuer, redirect)
}

func (l *Logins) saveClient(ctx context.Context, upstream, issuer, redirect string, c client) error {
	sealed, err := l.box.Seal(c, "client", upstream, issuer, redirect)
	if err != nil {
		return err
	}
	return l.db.Exec(ctx, `INSERT INTO oauth_clients (upstream, issuer, redirect, expires, sealed) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (upstream, issuer, redirect) DO UPDATE SET expires = excluded.expires, sealed = excluded.sealed`,
		upstream, issuer, redirect, db.UnixMicro(c.Expires), sealed)
}
