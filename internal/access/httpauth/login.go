package httpauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

const (
	csrfHeader = "X-CSRF-Token"
	maxBody    = 64 << 10
)

// Routes are those for logging in and out and for managing keys.
func (a *Authenticator) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "POST /api/v1/login", Scope: principal.Open, Handler: a.handle(a.login)},
		{Pattern: "POST /api/v1/logout", Scope: principal.Open, Body: principal.NoBody, Handler: a.handle(a.logout)},
		{Pattern: "GET /api/v1/me", Scope: principal.Open, Handler: a.handle(a.me)},
		{Pattern: "POST /api/v1/owner/link", Scope: principal.Admin, Body: principal.NoBody, Handler: a.handle(a.ownerLink)},
		{Pattern: "GET " + ownerPath, Scope: principal.Open, Handler: a.handle(a.signInOwner)},
		{Pattern: "POST /api/v1/me/org", Scope: principal.Open, Handler: a.handle(a.chooseOrg)},
		{Pattern: "GET /api/v1/me/keys", Scope: principal.Open, Handler: a.handle(a.ownKeys)},
		{Pattern: "POST /api/v1/me/keys", Scope: principal.Open, Handler: a.handle(a.createOwn)},
		{Pattern: "DELETE /api/v1/me/keys/{name}", Scope: principal.Open, Handler: a.handle(a.revokeOwn)},
		{Pattern: "GET /api/v1/keys", Scope: principal.Admin, Handler: a.handle(a.keys)},
		{Pattern: "POST /api/v1/keys", Scope: principal.Admin, Handler: a.handle(a.create)},
		{Pattern: "DELETE /api/v1/keys/{name}", Scope: principal.Admin, Handler: a.handle(a.revokeNamed)},
	}
}

// handle serves a function that may return an error, and refuses pages of other sites.
func (a *Authenticator) handle(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := a.options.Browsers.Refusal(r)
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			refuse(w, httpjson.StatusOf(err), err)
		}
	})
}

// Me describes the caller, as GET /api/v1/me and POST /api/v1/login answer it.
type Me struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Org        string            `json:"org,omitempty"`
	Orgs       []string          `json:"orgs,omitempty"`  // of a person: one of them is chosen with POST /api/v1/me/org; an empty one is the server itself
	Roles      []string          `json:"roles,omitempty"` // of a person in the organisation
	User       string            `json:"user,omitempty"`
	Client     string            `json:"client,omitempty"` // that acts for the person
	Scopes     []principal.Scope `json:"scopes"`
	Namespaces []string          `json:"namespaces,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	Limits     *principal.Limits `json:"limits,omitempty"`
	Expires    *time.Time        `json:"expires,omitempty"`
	Open       bool              `json:"open"`                 // no key is needed: every local caller may do everything
	CSRF       string            `json:"csrf_token,omitempty"` // of a session: sent back as X-CSRF-Token with every request but GET
}

func meOf(p principal.Principal, open bool) Me {
	m := Me{ID: p.ID, Name: p.Name, Org: p.Org, User: p.User, Client: p.Client, Scopes: p.KeyScopes(), Namespaces: p.Namespaces, Tools: p.Tools, Open: open}
	if limited := p.Limited(); len(limited) > 0 {
		m.Limits = &limited[0].Limits // of the key, or else of the person
	}
	if !p.Expires.IsZero() {
		m.Expires = &p.Expires
	}
	return m
}

// login exchanges a key for a browser session.
func (a *Authenticator) login(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key string `json:"key"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	from, id := netguard.Source(a.remote(r)), keyID(body.Key)
	begun, who, err := a.options.Keys.BeginSession(r.Context(), body.Key)
	if err != nil {
		if fault.CodeOf(err) == fault.Denied {
			// A right key gets in: others at the same address may have used up its attempts, and
			// nobody guesses a key of 256 bits.
			if after, stop := a.wrongKeys.blocked(from, id, time.Now()); stop {
				return principal.Exceeded{What: "wrong keys", Of: "the address " + from, Most: failuresAllowed, Per: "minute", After: after}.Fault()
			}
			a.wrongKeys.add(from, id, time.Now())
			a.options.OnLogin(r.Context(), "login", a.remote(r), false)
			a.reject(w, r, &principal.Route{}, err)
			return nil
		}
		return err
	}
	a.options.OnLogin(principal.With(r.Context(), who), "login", a.remote(r), true)
	cookie.In(r, a.options.Browsers).Set(w, cookie.Session, begun, who.Expires)
	m := meOf(who, false)
	m.CSRF = apikey.CSRF(begun)
	writeJSON(w, http.StatusOK, m)
	return nil
}

// logout ends the session, if there is one.
func (a *Authenticator) logout(w http.ResponseWriter, r *http.Request) error {
	if session := cookie.In(r, a.options.Browsers).Get(cookie.Session); session != "" {
		who, err := a.sessions(session).Session(r.Context(), session)
		if err == nil && !apikey.SameCSRF(session, r.Header.Get(csrfHeader)) {
			return errCSRF()
		}
		known := err == nil
		if err := a.sessions(session).EndSession(r.Context(), session); err != nil {
			return err
		}
		if known {
			a.options.OnLogin(principal.With(r.Context(), who), "logout", a.remote(r), true)
		}
		a.cancelSession(session)
	}
	cookie.In(r, a.options.Browsers).Set(w, cookie.Session, "", time.Time{})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// me describes the caller.
func (a *Authenticator) me(w http.ResponseWriter, r *http.Request) error {
	v, err := a.identify(r)
	required, unknown := a.KeyRequired(r.Context())
	if unknown == nil && !required && (err != nil || v.who.IsGuest()) {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "AuthenticationError", "code": "AUTHENTICATION_ERROR", "guest": true, "message": errGuest.Error(), "hint": fault.HintOf(errGuest)})
		return nil //nolint:nilerr // whatever was wrong, one signs in by a link
	}
	if err != nil {
		if code := fault.CodeOf(err); code == fault.Denied || code == fault.NeedsAuth {
			err = fault.New(fault.NeedsAuth, "%s", err.Error()).WithHint("log in: POST /api/v1/login")
		}
		return err
	}
	writeJSON(w, http.StatusOK, a.describe(v))
	return nil
}

// describe returns what the caller is told about themselves. Clients that act for somebody
// are not told in which other organisations the person is, and with which roles.
func (a *Authenticator) describe(v *access) Me {
	m := meOf(v.who, v.who.ID == principal.LocalID)
	if v.cookie != "" {
		m.CSRF = apikey.CSRF(v.cookie)
	}
	if id := authserver.OwnPerson(v.who); id != "" && a.options.People != nil {
		m.Orgs, m.Roles = a.options.People.Orgs(id), a.options.People.RolesOf(id, v.who.Org)
	}
	return m
}

// chooseOrg continues a person's session in another of their organisations.
func (a *Authenticator) chooseOrg(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Org string `json:"org"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if _, byToken := bearer(r); byToken || a.options.People == nil || !people.IsSession(cookie.In(r, a.options.Browsers).Get(cookie.Session)) {
		return fault.New(fault.Denied, "only the session of a person has a choice of organisations").
			WithHint("keys and clients have the organisation for which they were made")
	}
	v, err := a.identify(r)
	if err != nil {
		return err
	}
	if v.who, err = a.options.People.ChooseOrg(r.Context(), v.cookie, body.Org); err != nil {
		return err
	}
	a.options.OnLogin(principal.With(r.Context(), v.who), "org", a.remote(r), true)
	writeJSON(w, http.StatusOK, a.describe(v))
	return nil
}

// readJSON reads a JSON body. It insists on the content type, since browsers send
// that for pages of other sites only after a preflight request.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fault.New(fault.InvalidParams, "the body is not declared as JSON").WithHint("send the header Content-Type: application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return fault.New(fault.InvalidParams, "the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read body")
	}
	return httpjson.Decode(raw, into)
}
