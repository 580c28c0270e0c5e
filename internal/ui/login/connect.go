package login

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Manager is the part of the connection manager that logins need.
type Manager interface {
	Status(name string) (upstream.Status, bool)
	List() []upstream.Status
	Retry(name string)
}

// ServiceOptions are the parts that a Service connects.
type ServiceOptions struct {
	Manager     Manager
	Hidden      func(upstream string) bool // upstreams that cannot be logged in to through the API
	RedirectURL func() string
	// Session returns who uses a browser, by its cookie; nil: people cannot sign in.
	Session func(ctx context.Context, cookie string) (principal.Principal, error)
	Audit   func(ctx context.Context, action, subject string, detail []byte)
	Go      func(func(context.Context)) // runs a function in the background until the server closes
	Log     *slog.Logger
}

// Service performs logins for the HTTP API of a running server.
type Service struct {
	upstreams *Upstreams
	options   ServiceOptions

	mu      sync.Mutex
	seen    map[string]int64 // versions of logins that connections were retried with, by upstream
	changed chan struct{}    // closed when logins may have changed
}

// NewService returns a service over the logins of a database.
func NewService(upstreams *Upstreams, options ServiceOptions) *Service {
	return &Service{upstreams: upstreams, options: options, seen: map[string]int64{}, changed: make(chan struct{})}
}

func (s *Service) spec(name string) (upstream.Spec, error) {
	status, ok := s.options.Manager.Status(name)
	if !ok || s.options.Hidden(name) {
		return upstream.Spec{}, errNoUpstream(name)
	}
	return status.Desired, nil
}

func errNoUpstream(name string) error {
	return fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` names them")
}

// Begin implements Logins.
func (s *Service) Begin(ctx context.Context, name string, how Method) (oauth.Begun, error) {
	spec, err := s.spec(name)
	if err != nil {
		return oauth.Begun{}, err
	}
	return s.start(ctx, spec, how.Device, oauth.Return{URL: s.options.RedirectURL(), Bound: how.Bound})
}

// start begins a login, and waits in the background for one with a device code.
func (s *Service) start(ctx context.Context, spec upstream.Spec, device bool, back oauth.Return) (oauth.Begun, error) {
	begun, wait, err := s.upstreams.Start(ctx, spec, device, back)
	if err != nil || wait == nil {
		return begun, err
	}
	who := principal.Of(ctx)
	s.options.Go(func(ctx context.Context) { // the wait outlives the request
		ctx = principal.With(ctx, who)
		if err := wait(ctx); err != nil {
			s.options.Log.WarnContext(ctx, "not logged in", "upstream", spec.Name, "error", err)
			return
		}
		s.finished(ctx, spec.Name, spec.Owner)
	})
	return begun, nil
}

// Finish implements Logins.
func (s *Service) Finish(ctx context.Context, query url.Values) (string, error) {
	name, err := s.upstreams.Finish(ctx, query)
	if err == nil {
		s.finished(ctx, name, "")
	}
	return name, err
}

// finished connects the upstream with a new login. Connections of single people look for
// theirs with every call.
func (s *Service) finished(ctx context.Context, name, owner string) {
	s.loginsChanged()
	if owner != "" {
		s.options.Audit(ctx, "upstream.login", name, ownerDetail(owner))
		return
	}
	s.options.Audit(ctx, "upstream.login", name, nil)
	s.options.Manager.Retry(name)
}

// Status implements Logins.
func (s *Service) Status(ctx context.Context, name string) (oauth.Status, error) {
	spec, err := s.spec(name)
	if err != nil {
		return oauth.Status{}, err
	}
	return s.upstreams.StatusOf(ctx, spec)
}

// Logout implements Logins.
func (s *Service) Logout(ctx context.Context, name string) (bool, error) {
	if _, err := s.spec(name); err != nil {
		return false, err
	}
	s.options.Audit(ctx, "upstream.logout", name, nil)
	return s.upstreams.Logout(ctx, name)
}

// Document implements Logins.
func (s *Service) Document() any {
	if s.upstreams.options.MetadataURL == "" {
		return nil
	}
	return s.upstreams.options.Document([]string{s.options.RedirectURL()})
}

// Check retries the upstreams that wait for a login and for which another process
// has stored one since the last check: the command line, or another node. Logins that
// another process has ended are not used any more.
func (s *Service) Check(ctx context.Context) error {
	s.upstreams.Reload()
	s.loginsChanged()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range s.options.Manager.List() {
		if status.State != upstream.StateNeedsAuth {
			continue
		}
		login, err := s.upstreams.StatusOf(ctx, status.Desired)
		if err != nil {
			return err
		}
		if login.LoggedIn && login.Version != s.seen[status.Name] {
			s.seen[status.Name] = login.Version
			s.options.Manager.Retry(status.Name)
		}
	}
	return nil
}

var _ Logins = (*Service)(nil)

// ConnectPath is the path of the page on which a person logs in to an upstream with an
// account of their own; the upstream's name follows.
const ConnectPath = "/connect/"

// finishPath is where a page of ours leads a browser that comes back to CallbackPath: the
// redirect of another site does not send the session's cookie.
const finishPath = CallbackPath + "/finish"

// OwnRoutes are the routes by which people log in to upstreams with accounts of their own.
// They check who asks themselves.
func (s *Service) OwnRoutes(browsers netguard.Browsers) []principal.Route {
	c := connect{s, browsers}
	page := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Open, Write: serve, Refuse: c.refuse}
	}
	return []principal.Route{
		page("GET "+ConnectPath+"{namespace}", c.show),
		page("POST "+ConnectPath+"{namespace}", c.begin).Reads(principal.Form),
		page("GET "+finishPath, c.finish),
		{Pattern: "GET /api/v1/me/logins", Scope: principal.Open, Serve: func(r *http.Request) (any, error) {
			list, err := s.OwnLogins(r.Context())
			return map[string]any{"logins": list}, err
		}},
		{Pattern: "DELETE /api/v1/me/logins/{namespace}", Scope: principal.Open, Serve: func(r *http.Request) (any, error) {
			return map[string]bool{"logged_out": true}, s.EndOwn(r.Context(), r.PathValue("namespace"))
		}},
	}
}

// connect serves the pages.
type connect struct {
	service  *Service
	browsers netguard.Browsers
}

// refuse shows an error to people.
func (c connect) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	c.service.options.Log.InfoContext(r.Context(), "not logged in", "path", r.URL.Path, "error", err)
	writeResult(w, status, result{Problem: err.Error(), Hint: fault.HintOf(err)})
}

// errNotPerson refuses callers who have no account of their own.
var errNotPerson = fault.New(fault.Denied, "only people who are signed in log in with accounts of their own").
	WithHint("sign in at %s, or with luanette login", signin.Path)

// ownAccount returns the owner of the logins of whoever asks. Clients that act for a person
// do not manage them, and keys of machines have none.
func ownAccount(who principal.Principal) (owner string, err error) {
	if who.ID != principal.LocalID && authserver.OwnPerson(who) == "" {
		return "", errNotPerson
	}
	return who.LoginOwner(), nil
}

// show asks whether the person wants to log in. A link alone must not: anybody can send one.
func (c connect) show(w http.ResponseWriter, r *http.Request) error {
	who := principal.Of(r.Context())
	session := cookie.In(r, c.browsers).Get(cookie.Session)
	if _, err := ownAccount(who); err != nil {
		return c.signIn(w, r, session)
	}
	own, err := c.service.ownLogin(principal.With(r.Context(), who), r.PathValue("namespace"))
	if err != nil {
		return err
	}
	page.WriteForm(w, http.StatusOK, connectPage, map[string]any{
		"Person": who.Name, "Org": who.Org, "Login": own, "CSRF": apikey.CSRF(session), "Next": nextOf(r.URL.Query()),
	}, "'self' https: http://localhost:* http://127.0.0.1:*")
	return nil
}

var connectPage = page.New("connect", `<h1>Log in to {{.Login.Upstream}}</h1>
<p>You are signed in as <b>{{.Person}}</b>{{with .Org}} in <b>{{.}}</b>{{end}}. Calls of the tools of {{.Login.Upstream}} will use your own account there, and nobody else's will.</p>
{{if eq .Login.State "active"}}<p>You are logged in{{with .Login.Account}} as <b>{{.}}</b>{{end}}. You can log in again, as somebody else for example.</p>{{end}}
{{if eq .Login.State "needs_login"}}<p>Your login has ended.</p>{{end}}
<form method="post"><input type="hidden" name="csrf" value="{{.CSRF}}"><input type="hidden" name="next" value="{{.Next}}"><button>Log in</button></form>`)

// signIn leads somebody who is not signed in to sign in, and back. The link to the page may
// have come from another site, so that the browser did not send the session.
func (c connect) signIn(w http.ResponseWriter, r *http.Request, session string) error {
	query := r.URL.Query()
	if session == "" && !query.Has("again") {
		query.Set("again", "1")
		page.Continue(w, r, r.URL.EscapedPath()+"?"+query.Encode())
		return nil
	}
	if c.service.options.Session == nil {
		return errNotPerson
	}
	query.Del("again")
	next := r.URL.EscapedPath()
	if len(query) > 0 {
		next += "?" + query.Encode()
	}
	http.Redirect(w, r, signin.Path+"?next="+url.QueryEscape(next), http.StatusSeeOther)
	return nil
}

// nextOf is the address of this server to go on to; empty if none was given.
func nextOf(form url.Values) string {
	if form.Get("next") == "" {
		return ""
	}
	return signin.LocalPath(form.Get("next"))
}

// begin sends the person to the upstream's authorization server.
func (c connect) begin(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	who, err := c.sender(r)
	if err != nil {
		return err
	}
	ctx := principal.With(r.Context(), who)
	back := oauth.Return{Browser: signin.Browser(w, r, c.browsers, time.Now()), Next: nextOf(r.PostForm)}
	begun, err := c.service.BeginOwn(ctx, r.PathValue("namespace"), back)
	if err != nil {
		return err
	}
	if begun.Code != "" {
		page.Write(w, http.StatusOK, codePage, begun)
		return nil
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, begun.URL, http.StatusSeeOther)
	return nil
}

var codePage = page.New("code", `<h1>Log in to {{.Upstream}}</h1><p>Open <a href="{{.URL}}">{{.URL}}</a> and enter the code <b>{{.Code}}</b>. Then you can close this page.</p>`)

// sender returns who sent a form. Its CSRF token is in the form, not in a header as in other
// requests.
func (c connect) sender(r *http.Request) (who principal.Principal, err error) {
	who = principal.Of(r.Context())
	session := cookie.In(r, c.browsers).Get(cookie.Session)
	if people.IsSession(session) && c.service.options.Session != nil {
		if !apikey.SameCSRF(session, r.PostFormValue("csrf")) {
			return who, fault.New(fault.Denied, "the form does not repeat the session's CSRF token").WithHint("open the page again")
		}
		if who, err = c.service.options.Session(r.Context(), session); err != nil {
			return who, err
		}
	}
	_, err = ownAccount(who)
	return who, err
}

// finish completes a login, of the same person in the same browser.
func (c connect) finish(w http.ResponseWriter, r *http.Request) error {
	owner, err := ownAccount(principal.Of(r.Context()))
	if err != nil {
		return err
	}
	done, err := c.service.FinishOwn(r.Context(), r.URL.Query(), oauth.Visitor{Owner: owner, Browser: cookie.In(r, c.browsers).Get(cookie.Flow)})
	if err != nil {
		return err
	}
	if done.Next != "" {
		page.Continue(w, r, done.Next)
		return nil
	}
	writeResult(w, http.StatusOK, result{Upstream: done.Upstream})
	return nil
}

// ownerDetail is what the audit log says about a login of a person.
func ownerDetail(owner string) []byte {
	detail, _ := json.Marshal(map[string]string{"owner": owner}) // texts always encode
	return detail
}
