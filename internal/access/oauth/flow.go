package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// flowTime is how long a person has to confirm a login.
const flowTime = 10 * time.Minute

// flow is a login that waits to be confirmed.
type flow struct {
	Server   Server      `json:"server"`
	At       description `json:"at"`
	Client   client      `json:"client"`
	Resource string      `json:"resource"`
	Scopes   []string    `json:"scopes,omitempty"`
	Redirect string      `json:"redirect"`
	Verifier string      `json:"verifier"`
	Old      bool        `json:"old,omitempty"` // the server does not support resource indicators
}

// Begun is a login that a person has to confirm.
type Begun struct {
	Upstream string    `json:"upstream"`
	URL      string    `json:"url"` // to be opened in a browser
	Issuer   string    `json:"issuer"`
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires"`

	// For a device login: the code to enter at URL.
	Code string `json:"user_code,omitempty"`

	State string `json:"-"` // the state parameter that the browser returns with
}

// Return is how the browser comes back after a login.
type Return struct {
	URL string // an address of ours that calls Finish
	// Bound means that only the browser that began the login may finish it: the handler of
	// URL checks BrowserProof. Otherwise somebody could send another person a link, and get
	// a login with that person's account.
	Bound bool
}

// boundPrefix marks the states of bound logins.
const boundPrefix = "b."

// BrowserProof returns the text that the browser which began a login keeps, and returns
// with; empty if any browser may finish the login.
func BrowserProof(state string) string {
	if !strings.HasPrefix(state, boundPrefix) {
		return ""
	}
	return hashed("browser\x00" + state)
}

// Begin starts a login in a browser. The login may request more scopes than the server
// requires.
func (l *Logins) Begin(ctx context.Context, s Server, back Return) (Begun, error) {
	f, err := l.fetcher(s)
	if err != nil {
		return Begun{}, err
	}
	p, err := l.prepare(ctx, f, s, back.URL)
	if err != nil {
		return Begun{}, err
	}
	if p.At.Authorize == "" {
		return Begun{}, fault.New(fault.Upstream, "%s has no authorization endpoint", p.At.Issuer).
			WithHint("try `luanette upstream login %s --device`", s.Name)
	}
	if !slices.Contains(p.At.Challenges, "S256") {
		return Begun{}, fault.New(fault.Denied, "%s does not declare support for PKCE, without which a login could be stolen", p.At.Issuer).
			WithHint("ask its operator; otherwise use headers or bearer_env")
	}
	p.Redirect, p.Verifier = back.URL, oauth2.GenerateVerifier()
	state := rand.Text() + rand.Text()
	if back.Bound {
		state = boundPrefix + state
	}
	expires := l.options.Clock.Now().Add(flowTime)
	if err := l.saveFlow(ctx, state, expires, p); err != nil {
		return Begun{}, err
	}
	config := oauth2.Config{
		ClientID: p.Client.ID, RedirectURL: back.URL, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.At.Authorize},
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(p.Verifier)}
	if !p.Old {
		options = append(options, oauth2.SetAuthURLParam("resource", p.Resource))
	}
	if slices.Contains(p.Scopes, offline) {
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return Begun{
		Upstream: s.Name, URL: config.AuthCodeURL(state, options...), Issuer: p.At.Issuer, Scopes: p.Scopes,
		Expires: expires, State: state,
	}, nil
}

// offline is the scope of refresh tokens at OpenID providers, which require that the
// person is asked for it.
const offline = "offline_access"

// prepare finds the authorization server, the client and the scopes of a login.
func (l *Logins) prepare(ctx context.Context, f *fetcher, s Server, redirect string) (flow, error) {
	challenge, known, err := l.lastChallenge(ctx, s)
	if err != nil {
		return flow{}, err
	}
	if !known {
		if _, challenge, err = f.probe(ctx, s); err != nil {
			return flow{}, err
		}
	}
	where, at, err := f.discover(ctx, s, challenge)
	if err != nil {
		return flow{}, err
	}
	who, err := l.clientFor(ctx, f, s, at, redirect)
	if err != nil {
		return flow{}, err
	}
	scopes, err := l.scopesFor(ctx, s, challenge, where, at)
	if err != nil {
		return flow{}, err
	}
	return flow{Server: s, At: at, Client: who, Resource: where.resource, Scopes: scopes, Old: at.old}, nil
}

// scopesFor returns the scopes to request: the configured ones, else those that the
// server requires in addition to those granted before, else all scopes of the server.
func (l *Logins) scopesFor(ctx context.Context, s Server, c Challenge, where place, at description) ([]string, error) {
	scopes := s.Settings.Scopes
	if len(scopes) == 0 {
		if scopes = c.Scopes; len(scopes) == 0 {
			scopes = where.scopes
		}
		have, err := l.load(ctx, s)
		if err != nil {
			return nil, err
		}
		if have.Issuer == at.Issuer && c.Error == InsufficientScope {
			scopes = union(have.Scopes, scopes)
		}
	}
	if slices.Contains(at.Scopes, offline) {
		scopes = union(scopes, []string{offline})
	}
	return scopes, nil
}

// Finish completes a login with the parameters of the redirect. Each state can be used
// once.
func (l *Logins) Finish(ctx context.Context, back url.Values) (upstream string, err error) {
	p, err := l.takeFlow(ctx, back.Get("state"))
	if err != nil {
		return "", err
	}
	name := p.Server.Name
	if err := p.checkIssuer(back); err != nil {
		return name, err
	}
	if code := back.Get("error"); code != "" {
		return name, fault.Wrap(fault.Denied, &refused{p.At.Issuer, printable(code), printable(back.Get("error_description"))}, "log in to %s", name).
			WithHint("start again with `luanette upstream login %s`", name)
	}
	code := back.Get("code")
	if code == "" {
		return name, fault.New(fault.InvalidParams, "log in to %s: the redirect has no code", name)
	}
	f, err := l.fetcher(p.Server)
	if err != nil {
		return name, err
	}
	got, err := l.grant(ctx, f, p.Server, p.At, p.Client, p.form(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.Redirect}, "code_verifier": {p.Verifier},
	}))
	if err != nil {
		l.forgetRegistration(ctx, p, err)
		return name, fault.Wrap(fault.Upstream, err, "log in to %s", name).
			WithHint("start again with `luanette upstream login %s`", name)
	}
	return name, l.saveTokens(ctx, p, got)
}

// form adds the resource to a token request.
func (p flow) form(form url.Values) url.Values {
	if !p.Old {
		form.Set("resource", p.Resource)
	}
	return form
}

// checkIssuer checks that the response is from the expected server (RFC 9207). Another
// server could try to obtain our code.
func (p flow) checkIssuer(back url.Values) error {
	said, present := back.Get("iss"), back.Has("iss")
	if !present && !p.At.TellsIssuer || present && said == p.At.Issuer {
		return nil
	}
	if !present {
		return fault.New(fault.Denied, "log in to %s: the response does not name the issuer %s", p.Server.Name, p.At.Issuer)
	}
	return fault.New(fault.Denied, "log in to %s: the response is from %q, not from %s", p.Server.Name, printable(said), p.At.Issuer).
		WithHint("another server may be trying to obtain your login; start again, and report it to the operator of the server if it is repeated")
}

// forgetRegistration deletes a client that the server no longer knows, so that the
// next login registers a new one.
func (l *Logins) forgetRegistration(ctx context.Context, p flow, cause error) {
	var no *refused
	if !errors.As(cause, &no) || no.code != "invalid_client" || p.Client.Configured {
		return
	}
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM oauth_clients WHERE upstream = $1 AND issuer = $2`, p.Server.Name, p.At.Issuer)
		return err
	})
	if err != nil {
		l.options.Log.WarnContext(ctx, "an unknown client registration was not deleted", "upstream", p.Server.Name, "error", err)
	}
}

func hashed(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

func (l *Logins) saveFlow(ctx context.Context, state string, expires time.Time, p flow) error {
	id := hashed(state)
	sealed, err := l.box.Seal(p, "flow", p.Server.Name, p.At.Issuer, id)
	if err != nil {
		return err
	}
	return l.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_flows WHERE expires < $1`, l.options.Clock.Now().UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO oauth_flows (state, upstream, issuer, expires, sealed) VALUES ($1, $2, $3, $4, $5)`,
			id, p.Server.Name, p.At.Issuer, expires.UnixMicro(), sealed)
		return err
	})
}

// takeFlow returns the login of a state and deletes it, so that it is used once.
func (l *Logins) takeFlow(ctx context.Context, state string) (p flow, err error) {
	var upstream, issuer string
	var expires int64
	var sealed []byte
	id := hashed(state)
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `DELETE FROM oauth_flows WHERE state = $1 RETURNING upstream, issuer, expires, sealed`, id).
			Scan(&upstream, &issuer, &expires, &sealed)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires < l.options.Clock.Now().UnixMicro() {
		return p, fault.New(fault.NotFound, "no login with this state").
			WithHint("it was already completed, has expired, or was started on another server; start the login again")
	}
	if err != nil {
		return p, err
	}
	return p, l.box.Open(sealed, &p, "flow", upstream, issuer, id)
}

func readCloser(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
