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
	Old      bool        `json:"old,omitempty"`  // the server does not support resource indicators
	Next     string      `json:"next,omitempty"` // of Return
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
	// Browser is the text by which the browser is recognized, for the login of a person:
	// only the same person in the same browser finishes it.
	Browser string
	Next    string // where to go on after the login; may be empty
}

// Prefixes of states.
const (
	boundPrefix = "b." // of bound logins
	ownedPrefix = "o." // of logins of a person
)

// IsOwned reports whether a state is that of a login of a person, for which FinishOwn has to
// know who comes back.
func IsOwned(state string) bool { return strings.HasPrefix(state, ownedPrefix) }

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
	if s.Owner == "" {
		back.Browser = ""
	}
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
	p.Redirect, p.Verifier, p.Next = back.URL, oauth2.GenerateVerifier(), back.Next
	state, err := back.newState(s)
	if err != nil {
		return Begun{}, err
	}
	expires := l.options.Clock.Now().Add(flowTime)
	if err := l.saveFlow(ctx, state, back.Browser, expires, p); err != nil {
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

// newState returns a new state parameter.
func (back Return) newState(s Server) (string, error) {
	state := rand.Text() + rand.Text()
	switch {
	case s.Owner != "" && back.Browser == "":
		return "", fault.New(fault.Denied, "the login of a person to %s begins in their browser", s.Name)
	case s.Owner != "":
		return ownedPrefix + state, nil
	case back.Bound:
		return boundPrefix + state, nil
	}
	return state, nil
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

// Visitor is who comes back from a login: the ID of the principal, and the text by which
// their browser is recognized.
type Visitor struct{ Owner, Browser string }

// Finished is a login that was completed.
type Finished struct{ Upstream, Owner, Next string }

// Finish completes a shared login with the parameters of the redirect. Each state can be
// used once.
func (l *Logins) Finish(ctx context.Context, back url.Values) (upstream string, err error) {
	done, err := l.FinishOwn(ctx, back, Visitor{})
	return done.Upstream, err
}

// FinishOwn is Finish for any login. The login of a person is neither completed nor used up
// by somebody else or in another browser; the error is fault.Denied then.
func (l *Logins) FinishOwn(ctx context.Context, back url.Values, by Visitor) (Finished, error) {
	p, err := l.takeFlow(ctx, back.Get("state"), by)
	if err != nil {
		return Finished{}, err
	}
	return Finished{p.Server.Name, p.Server.Owner, p.Next}, l.complete(ctx, p, back)
}

// complete gets and stores the tokens of a login.
func (l *Logins) complete(ctx context.Context, p flow, back url.Values) error {
	name := p.Server.shownName()
	if err := p.checkIssuer(back); err != nil {
		return err
	}
	if code := back.Get("error"); code != "" {
		return fault.Wrap(fault.Denied, &refused{p.At.Issuer, printable(code), printable(back.Get("error_description"))}, "log in to %s", name).
			WithHint("%s", l.again(p.Server))
	}
	code := back.Get("code")
	if code == "" {
		return fault.New(fault.InvalidParams, "log in to %s: the redirect has no code", name)
	}
	f, err := l.fetcher(p.Server)
	if err != nil {
		return err
	}
	got, err := l.grant(ctx, f, p.Server, p.At, p.Client, p.form(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.Redirect}, "code_verifier": {p.Verifier},
	}))
	if err != nil {
		l.forgetRegistration(ctx, p, err)
		return fault.Wrap(fault.Upstream, err, "log in to %s", name).
			WithHint("%s", l.again(p.Server))
	}
	return l.saveTokens(ctx, p, got)
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
	err := l.db.Exec(ctx, `DELETE FROM oauth_clients WHERE upstream = $1 AND issuer = $2`, p.Server.Name, p.At.Issuer)
	if err != nil {
		l.options.Log.WarnContext(ctx, "an unknown client registration was not deleted", "upstream", p.Server.Name, "error", err)
	}
}

func hashed(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

// hashedBrowser is how a flow stores its browser; "" if any browser may finish it.
func hashedBrowser(text string) string {
	if text == "" {
		return ""
	}
	return hashed(text)
}

func (l *Logins) saveFlow(ctx context.Context, state, browser string, expires time.Time, p flow) error {
	id := hashed(state)
	sealed, err := l.box.Seal(p, p.Server.subject("flow", p.At.Issuer, id)...)
	if err != nil {
		return err
	}
	return l.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM oauth_flows WHERE expires < $1`, l.options.Clock.Now().UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO oauth_flows (state, upstream, owner, browser, issuer, expires, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			id, p.Server.Name, p.Server.Owner, hashedBrowser(browser), p.At.Issuer, expires.UnixMicro(), sealed)
		return err
	})
}

// takeFlow returns the login of a state and deletes it, so that it is used once.
func (l *Logins) takeFlow(ctx context.Context, state string, by Visitor) (p flow, err error) {
	owned := IsOwned(state)
	if !owned {
		by = Visitor{}
	}
	var of Server
	var issuer string
	var expires int64
	var sealed []byte
	id := hashed(state)
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `DELETE FROM oauth_flows WHERE state = $1 AND owner = $2 AND browser = $3 RETURNING upstream, owner, issuer, expires, sealed`,
			id, by.Owner, hashedBrowser(by.Browser)).Scan(&of.Name, &of.Owner, &issuer, &expires, &sealed)
	})
	if owned && errors.Is(err, sql.ErrNoRows) {
		return p, fault.New(fault.Denied, "you have not begun this login in this browser, or it has ended").
			WithHint("begin it again yourself; do not finish logins that somebody sent you a link to")
	}
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires < l.options.Clock.Now().UnixMicro() {
		return p, fault.New(fault.NotFound, "no login with this state").
			WithHint("it was already completed, has expired, or was started on another server; start the login again")
	}
	if err != nil {
		return p, err
	}
	return p, l.box.Open(sealed, &p, of.subject("flow", issuer, id)...)
}

func readCloser(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
