package httpauth

import (
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strings"
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

const csrfHeader = "X-CSRF-Token"

// Routes are those for logging in and out and for managing keys.
func (a *Authenticator) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "POST /api/v1/login", Scope: principal.Open, Write: a.login},
		{Pattern: "POST /api/v1/logout", Scope: principal.Open, Body: principal.NoBody, Write: a.logout},
		{Pattern: "GET /api/v1/me", Scope: principal.Open, Write: a.me},
		{Pattern: "POST /api/v1/owner/link", Scope: principal.Admin, Body: principal.NoBody, Serve: a.ownerLink},
		{Pattern: "GET " + ownerPath, Scope: principal.Open, Write: a.signInOwner},
		{Pattern: "POST /api/v1/me/org", Scope: principal.Open, Serve: a.chooseOrg},
		{Pattern: "GET /api/v1/me/keys", Scope: principal.Open, Serve: a.ownKeys},
		{Pattern: "POST /api/v1/me/keys", Scope: principal.Open, Write: a.createOwn},
		{Pattern: "DELETE /api/v1/me/keys/{name}", Scope: principal.Open, Serve: a.revokeOwn},
		{Pattern: "GET /api/v1/keys", Scope: principal.Admin, Serve: a.keys},
		{Pattern: "POST /api/v1/keys", Scope: principal.Admin, Write: a.create},
		{Pattern: "DELETE /api/v1/keys/{name}", Scope: principal.Admin, Serve: a.revokeNamed},
	}
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
	Has        []string          `json:"has,omitempty"`        // what not every server has: "people" who sign in, the "music" tools
	CSRF       string            `json:"csrf_token,omitempty"` // of a session: sent back as X-CSRF-Token with every request but GET
}

func (a *Authenticator) meOf(p principal.Principal, open bool) Me {
	m := Me{Has: a.options.Has, ID: p.ID, Name: p.Name, Org: p.Org, User: p.User, Client: p.Client, Scopes: p.KeyScopes(), Namespaces: p.Namespaces, Tools: p.Tools, Open: open}
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
	if err := readJSON(r, &body); err != nil {
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
	m := a.meOf(who, false)
	m.CSRF = apikey.CSRF(begun)
	httpjson.JSON(w, http.StatusOK, m)
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
		command, refusal := "luanette open", a.errGuest()
		if err == nil { // others on the machine learn no folders
			command = a.options.Peers.OpenCommand()
		} else {
			refusal = err
		}
		httpjson.JSON(w, http.StatusUnauthorized, map[string]any{
			"error": http.StatusText(http.StatusUnauthorized), "code": fault.NeedsAuth, "guest": true, "open": command,
			"message": refusal.Error(), "hint": fault.HintOf(refusal),
		})
		return nil // whatever was wrong, one signs in by a link
	}
	if err != nil {
		if code := fault.CodeOf(err); code == fault.Denied || code == fault.NeedsAuth {
			err = fault.New(fault.NeedsAuth, "%s", err.Error()).WithHint("commands sign in with `luanette login URL` or send a key, browsers with POST /api/v1/login")
		}
		return err
	}
	httpjson.JSON(w, http.StatusOK, a.describe(v))
	return nil
}

// describe returns what the caller is told about themselves. Clients that act for somebody
// are not told in which other organisations the person is, and with which roles.
func (a *Authenticator) describe(v *access) Me {
	m := a.meOf(v.who, v.who.ID == principal.LocalID)
	if v.cookie != "" {
		m.CSRF = apikey.CSRF(v.cookie)
	}
	if id := authserver.OwnPerson(v.who); id != "" && a.options.People != nil {
		m.Orgs, m.Roles = a.options.People.Orgs(id), a.options.People.RolesOf(id, v.who.Org)
	}
	return m
}

// chooseOrg continues a person's session in another of their organisations.
func (a *Authenticator) chooseOrg(r *http.Request) (any, error) {
	var body struct {
		Org string `json:"org"`
	}
	if err := readJSON(r, &body); err != nil {
		return nil, err
	}
	if _, byToken := bearer(r); byToken || a.options.People == nil || !people.IsSession(cookie.In(r, a.options.Browsers).Get(cookie.Session)) {
		return nil, fault.New(fault.Denied, "only the session of a person has a choice of organisations").
			WithHint("keys and clients have the organisation for which they were made")
	}
	v, err := a.identify(r)
	if err != nil {
		return nil, err
	}
	if v.who, err = a.options.People.ChooseOrg(r.Context(), v.cookie, body.Org); err != nil {
		return nil, err
	}
	a.options.OnLogin(principal.With(r.Context(), v.who), "org", a.remote(r), true)
	return a.describe(v), nil
}

// readJSON reads a JSON body. It insists on the content type, since browsers send
// that for pages of other sites only after a preflight request.
func readJSON(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fault.New(fault.InvalidParams, "the body is not declared as JSON").WithHint("send the header Content-Type: application/json")
	}
	return httpjson.Read(r, into)
}

// ownerPath is where a link signs the owner's browser in.
const ownerPath = "/signin/owner"

// OwnerLink returns the path of a link that signs one browser in as the owner, once.
func (a *Authenticator) OwnerLink() string {
	return ownerPath + "?" + url.Values{"code": {a.codes.New()}}.Encode()
}

// ownerLink answers the owner's commands with such a link. With a key one logs in on the page.
func (a *Authenticator) ownerLink(r *http.Request) (any, error) {
	path := "/"
	if principal.Of(r.Context()).ID == principal.LocalID {
		path = a.OwnerLink()
	}
	return map[string]string{"path": path}, nil
}

// signInOwner begins the owner's session in the browser that opened a link.
func (a *Authenticator) signInOwner(w http.ResponseWriter, r *http.Request) error {
	from := netguard.Source(a.remote(r))
	if after, stop := a.wrongKeys.blocked(from, "", time.Now()); stop {
		return principal.Exceeded{What: "wrong codes", Of: "the address " + from, Most: failuresAllowed, Per: "minute", After: after}.Fault()
	}
	if err := a.checkOwner(r, &access{who: principal.Local()}); err != nil {
		return err
	}
	if a.options.Secret.IsZero() || !a.codes.Use(r.URL.Query().Get("code")) {
		a.wrongKeys.add(from, "", time.Now())
		a.options.OnLogin(r.Context(), "login", a.remote(r), false)
		return fault.New(fault.Denied, "this link was used already, or is of an earlier start").WithHint("luanette open makes another")
	}
	session, who, err := a.options.Keys.BeginSession(r.Context(), a.options.Secret.Reveal())
	if err != nil {
		return err
	}
	a.options.OnLogin(principal.With(r.Context(), who), "login", a.remote(r), true)
	cookie.In(r, a.options.Browsers).Set(w, cookie.Session, session, who.Expires)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// keylessError refuses a request to a server without keys that may come from somebody
// else than the owner.
type keylessError struct{ error }

func (e keylessError) Unwrap() error { return e.error }

// local returns the access of a request without credentials to a server without keys. What
// is at the machine's own addresses is a guest at least, so a proxy in between would make
// everybody one, even a trusted proxy.
func (a *Authenticator) local(r *http.Request) (*access, error) {
	if !isLocal(r) {
		return nil, errNoCredentials
	}
	if why := foreign(r); why != "" {
		return nil, keylessError{fault.New(fault.Denied, "no key exists yet, so only this machine itself is served: %s", why).
			WithHint("make a key: luanette key create admin --scope admin")}
	}
	who, err := a.options.Peers.Identify(r.Context())
	return &access{who: who}, err
}

// checkOwner refuses the owner's secret and session from elsewhere than this machine, and
// from programs that the server has started: nobody has copied it there with a good reason.
func (a *Authenticator) checkOwner(r *http.Request, c *access) error {
	if c.who.ID != principal.LocalID {
		return nil
	}
	if !isLocal(r) {
		return fault.New(fault.Denied, "the owner's secret is for the machine of the server only").WithHint("use a key: luanette key create")
	}
	if why := foreign(r); why != "" {
		return fault.New(fault.Denied, "the owner's secret is for the machine of the server only: %s", why).WithHint("use a key: luanette key create")
	}
	return a.options.Peers.MayBeOwner(r.Context())
}

// errGuest refuses a guest.
func (a *Authenticator) errGuest() error {
	return fault.New(fault.NeedsAuth, "this is for the owner of the machine").WithHint("%s", a.options.Peers.SignInHint())
}

// errOtherSecret refuses the secret of another data folder. Only a guest learns the server's.
func (a *Authenticator) errOtherSecret(r *http.Request) error {
	err := fault.New(fault.Denied, "this is the owner's secret of another data folder")
	if c, problem := a.local(r); problem == nil && c.who.IsGuest() {
		err = err.WithHint("%s", a.options.Peers.SignInHint())
	}
	return err
}

// ignoreKey returns the access without a key in place of the refusal of a wrong one, if the
// route takes any and the server has none.
func (a *Authenticator) ignoreKey(r *http.Request, route *principal.Route, c *access, refusal error) (*access, error) {
	if _, sent := bearer(r); refusal == nil || !route.AnyKey || !sent || fault.CodeOf(refusal) != fault.Denied {
		return c, refusal
	}
	if required, err := a.KeyRequired(r.Context()); err != nil || required {
		return c, refusal
	}
	return a.local(r)
}

// foreign returns why a request may come from another machine, or "".
func foreign(r *http.Request) string {
	header := netguard.Forwarded(r)
	switch {
	case header != "":
		return "the header " + header + " shows that a proxy forwarded the request"
	case !(netguard.Browsers{}).Served(r):
		return "the request is for the Host " + r.Host
	case !r.ProtoAtLeast(1, 1):
		return "HTTP/1.0 is what proxies use"
	}
	return ""
}

// refuseKeyless answers a request that keylessError refuses, and reports whether it did.
// Health checks are answered through a proxy too.
func (a *Authenticator) refuseKeyless(w http.ResponseWriter, r *http.Request, route *principal.Route, err error) bool {
	var keyless keylessError
	if !errors.As(err, &keyless) || r.URL.Path == "/health" || r.URL.Path == "/ready" {
		return false
	}
	if a.countRefusal(r) {
		a.options.Log.WarnContext(r.Context(), "auth_rejected", "event", "auth_rejected", "method", r.Method, "path", r.URL.Path, "remote", a.remote(r), "error", err)
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		route.Fail(w, r, http.StatusForbidden, err)
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(http.StatusForbidden)
	_ = keylessPage.Execute(w, err.Error()) // a client that is gone
	return true
}

var keylessPage = template.Must(template.New("keyless").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Luanette needs a key</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem}pre{padding:1rem;border:1px solid #8888;overflow:auto}</style>
<h1>This server needs a key first</h1>
<p>{{.}}.</p>
<p>Make a key on the machine of the server, then reload this page and log in with it:</p>
<pre>luanette key create admin --scope admin</pre>
<p>If a reverse proxy is in front of the server, name it in <code>luanette.toml</code>, so that logs, limits and the audit log have the addresses of its clients:</p>
<pre>trusted_proxies = ["127.0.0.1"]</pre>
</html>
`))
