package httpauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

const (
	cookieName = "luanette_session"
	csrfHeader = "X-CSRF-Token"
	bodyMost   = 64 << 10
)

// Routes are those of the gate itself.
func (g *Authenticator) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "POST /api/v1/login", Handler: g.own(g.login)},
		{Pattern: "POST /api/v1/logout", Handler: g.own(g.logout)},
		{Pattern: "GET /api/v1/me", Handler: g.own(g.me)},
		{Pattern: "GET /api/v1/keys", Scope: principal.Admin, Handler: g.own(g.keys)},
		{Pattern: "POST /api/v1/keys", Scope: principal.Admin, Handler: g.own(g.create)},
		{Pattern: "DELETE /api/v1/keys/{name}", Scope: principal.Admin, Handler: g.own(g.revoke)},
	}
}

// own words what goes wrong, and keeps out pages of other sites.
func (g *Authenticator) own(does func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.options.Browsers.Refusal(r)
		if err == nil {
			err = does(w, r)
		}
		if err != nil {
			refuse(w, statusOf(err), err)
		}
	})
}

// Me is who one is, as GET /api/v1/me and POST /api/v1/login tell.
type Me struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Org        string            `json:"org,omitempty"`
	User       string            `json:"user,omitempty"`
	Scopes     []principal.Scope `json:"scopes"`
	Namespaces []string          `json:"namespaces,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	Limits     *principal.Limits `json:"limits,omitempty"`
	Expires    *time.Time        `json:"expires,omitempty"`
	Open       bool              `json:"open"`                 // no key is needed: everything is allowed to everybody here
	CSRF       string            `json:"csrf_token,omitempty"` // of a session: to be sent as X-CSRF-Token with whatever is no GET
}

func meOf(p principal.Principal, open bool) Me {
	m := Me{ID: p.ID, Name: p.Name, Org: p.Org, User: p.User, Scopes: p.Scopes, Namespaces: p.Namespaces, Tools: p.Tools, Open: open}
	if p.Limits != (principal.Limits{}) {
		m.Limits = &p.Limits
	}
	if !p.Expires.IsZero() {
		m.Expires = &p.Expires
	}
	return m
}

// login turns a key into a browser's session.
func (g *Authenticator) login(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key string `json:"key"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if after, stop := g.guesses.enough(remote(r), time.Now()); stop {
		return principal.Exceeded{What: "wrong keys", Of: "the address " + remote(r), Most: triesMost, Per: "minute", After: after}.Fault()
	}
	cookie, who, err := g.options.Ring.BeginSession(r.Context(), body.Key)
	if err != nil {
		if fault.CodeOf(err) == fault.Denied {
			g.options.OnLogin(r.Context(), "login", remote(r), false)
			g.turnAway(w, r, "", err)
			return nil
		}
		return err
	}
	g.options.OnLogin(principal.With(r.Context(), who), "login", remote(r), true)
	http.SetCookie(w, sessionCookie(r, cookie, who.Expires))
	m := meOf(who, false)
	m.CSRF = apikey.CSRF(cookie)
	tell(w, http.StatusOK, m)
	return nil
}

// sessionCookie is the cookie of a session; an empty value takes it away.
func sessionCookie(r *http.Request, value string, expires time.Time) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName, Value: value, Path: "/", Expires: expires,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// logout ends the session. Without one there is nothing to do.
func (g *Authenticator) logout(w http.ResponseWriter, r *http.Request) error {
	cookie, err := r.Cookie(cookieName)
	if err == nil && cookie.Value != "" {
		who, err := g.options.Ring.Session(r.Context(), cookie.Value)
		if err == nil && !apikey.SameCSRF(cookie.Value, r.Header.Get(csrfHeader)) {
			return fault.New(fault.Denied, "the request does not repeat the session's CSRF token").
				WithHint("send the csrf_token of GET /api/v1/me as header " + csrfHeader)
		}
		known := err == nil
		if err := g.options.Ring.EndSession(r.Context(), cookie.Value); err != nil {
			return err
		}
		if known {
			g.options.OnLogin(principal.With(r.Context(), who), "logout", remote(r), true)
		}
		g.end(cookie.Value)
	}
	http.SetCookie(w, sessionCookie(r, "", time.Unix(1, 0)))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// me tells who one is.
func (g *Authenticator) me(w http.ResponseWriter, r *http.Request) error {
	v, err := g.identify(r)
	if err != nil {
		if code := fault.CodeOf(err); code == fault.Denied || code == fault.NeedsAuth {
			err = fault.New(fault.NeedsAuth, "%s", err.Error()).WithHint("log in: POST /api/v1/login")
		}
		return err
	}
	m := meOf(v.who, v.who.ID == principal.LocalID)
	if v.cookie != "" {
		m.CSRF = apikey.CSRF(v.cookie)
	}
	tell(w, http.StatusOK, m)
	return nil
}

// readJSON reads a body, which pages of other sites cannot send as JSON without
// being asked first.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fault.New(fault.InvalidParams, "the body is not declared as JSON").WithHint("send the header Content-Type: application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMost))
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return fault.New(fault.InvalidParams, "the body has more than %d bytes", bodyMost)
	}
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read body")
	}
	return httpjson.Decode(raw, into)
}
