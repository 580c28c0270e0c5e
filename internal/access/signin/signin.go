// Package signin lets people sign in at OpenID providers: the authorization code flow
// with PKCE, state and nonce, bound to the browser that began it. It also signs them out,
// here and at the provider, and asks the provider again while a session lasts.
package signin

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Provider is an OpenID provider, and what the people who sign in there may do.
type Provider struct {
	Name     string
	Issuer   string
	ClientID string
	Secret   func() (secret.Text, error) // nil: a public client
	Scopes   []string                    // to request besides openid
	Domains  []string                    // the only domains of verified addresses; empty: all
	Org      string                      // of everybody who signs in; empty: the server itself, or only those of Orgs
	Orgs     map[string][]Membership     // further organisations of each group
	// Groups is the claim with a person's groups. Roles are the roles of each group, and
	// Everybody those of all who sign in.
	Groups    string
	Roles     map[string][]string
	Everybody []string
	Clients   ClientSecrets // that may act here for its people by its word alone; none: nobody
}

// Membership is what a group means for an organisation: its members are in it, with these
// roles besides those that they have everywhere.
type Membership struct {
	Org   string
	Roles []string
}

// Options are the options of a Service.
type Options struct {
	Providers []Provider
	PublicURL string // where browsers reach this server, without a slash at the end
	People    *people.Store
	Browsers  netguard.Browsers
	// Client sends requests to providers; it must restrict which addresses it connects to.
	Client *http.Client
	// Key encrypts what is stored while people are at their provider.
	Key func() (secret.Text, error)
	// OnSignIn is called when people sign in, allowed or not, or sign out. It may be nil.
	OnSignIn func(ctx context.Context, action, from string, allowed bool)
	Clock    clock.Clock // nil: the machine's
	Log      *slog.Logger
}

// Service signs people in. It is safe for concurrent use.
type Service struct {
	db        *db.DB
	options   Options
	box       secret.Box
	providers map[string]*provider
	renewals  *queue.Lanes // of kept tokens
	refused   queue.RateLimiter
}

// provider is a provider with its metadata.
type provider struct {
	Provider
	remote *jwt.Provider
}

// Open creates the table.
func Open(ctx context.Context, store *db.DB, o Options) (*Service, error) {
	if err := store.Migrate(ctx, "signin", Migrations); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnSignIn == nil {
		o.OnSignIn = func(context.Context, string, string, bool) {}
	}
	s := &Service{
		db: store, options: o, providers: map[string]*provider{}, renewals: queue.NewLanes(queue.LaneOptions{Depth: 1000}),
		box: secret.Box{Key: sync.OnceValues(o.Key), RecoveryHint: "sign in again"},
	}
	for _, p := range o.Providers {
		s.providers[p.Name] = &provider{p, jwt.NewProvider(p.Issuer, p.ClientID, o.Client)}
	}
	return s, nil
}

// Paths of the pages.
const (
	Path         = "/signin"
	CallbackPath = "/signin/callback"
	signOutPath  = "/signout"
)

// Routes are the package's routes. All of them check cookies themselves: browsers come
// back from other sites, which send no session.
func (s *Service) Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Open, Write: serve, Refuse: s.refuse, Authenticates: true}
	}
	return []principal.Route{
		route("GET "+Path, s.choose),
		route("GET "+Path+"/to/{provider}", s.begin),
		route("GET "+CallbackPath, s.callback),
		route("POST "+Path+"/ended/{provider}", s.ended).Reads(principal.Form),
		route("GET "+signOutPath, s.askSignOut),
		route("POST "+signOutPath, s.signOut).Reads(principal.Form),
	}
}

// refuse shows an error to people. What is wrong in the configuration is for the log only: whoever
// asks is not known yet.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	if fault.CodeOf(err) == fault.Config {
		s.options.Log.WarnContext(r.Context(), "nobody can sign in", "path", r.URL.Path, "error", err, "hint", fault.HintOf(err))
		err = fault.New(fault.Config, "a setting that signing in needs is missing or wrong").WithHint("tell an administrator: the server's log and `luanette doctor` say which")
	} else {
		s.options.Log.InfoContext(r.Context(), "not signed in", "path", r.URL.Path, "error", err)
	}
	page.Write(w, status, problemPage, map[string]string{"Problem": err.Error(), "Hint": fault.HintOf(err), "SignIn": netguard.Base(r) + Path})
}

var problemPage = page.New("problem", `<h1>Not signed in</h1><p>{{.Problem}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}<p><a href="{{.SignIn}}">Sign in</a></p>`)

// choose leads on to the provider, or lets people choose one of several.
func (s *Service) choose(w http.ResponseWriter, r *http.Request) error {
	next := local(r.URL.Query().Get("next"))
	if len(s.options.Providers) == 1 {
		http.Redirect(w, r, s.to(s.options.Providers[0].Name, next), http.StatusSeeOther)
		return nil
	}
	links := []map[string]string{}
	for _, p := range s.options.Providers {
		links = append(links, map[string]string{"Name": p.Name, "URL": netguard.Base(r) + s.to(p.Name, next)})
	}
	page.Write(w, http.StatusOK, choosePage, links)
	return nil
}

var choosePage = page.New("choose", `<h1>Sign in</h1>{{range .}}<p><a class="button" href="{{.URL}}">{{.Name}}</a></p>{{end}}`)

// to is the address that leads to a provider.
func (s *Service) to(name, next string) string {
	return Path + "/to/" + url.PathEscape(name) + "?next=" + url.QueryEscape(next)
}

// local returns an address of this server to go on to, so that no link can lead people who
// have just signed in to another site.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// named returns the provider of a request.
func (s *Service) named(name string) (*provider, error) {
	p, ok := s.providers[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "no identity provider %q", name)
	}
	return p, nil
}

// askSignOut asks before it signs out: a link alone must not.
func (s *Service) askSignOut(w http.ResponseWriter, r *http.Request) error {
	session := cookie.In(r, s.options.Browsers).Get(cookie.Session)
	who, err := s.options.People.Session(r.Context(), session)
	if err != nil {
		return err
	}
	page.WriteForm(w, http.StatusOK, signOutPage, map[string]string{"Name": who.Name, "CSRF": apikey.CSRF(session)}, "'self' https: http://localhost:* http://127.0.0.1:*")
	return nil
}

var signOutPage = page.New("signout", `<h1>Sign out</h1><p>You are signed in as {{.Name}}.</p>
<form method="post"><input type="hidden" name="csrf" value="{{.CSRF}}"><button>Sign out</button></form>`)

// signOut ends the session here, and leads to the provider to end it there.
func (s *Service) signOut(w http.ResponseWriter, r *http.Request) error {
	session := cookie.In(r, s.options.Browsers).Get(cookie.Session)
	who, err := s.options.People.Session(r.Context(), session)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if !apikey.SameCSRF(session, r.PostFormValue("csrf")) {
		return fault.New(fault.Denied, "the form does not repeat the session's CSRF token").WithHint("open %s again", signOutPath)
	}
	stored, err := s.options.People.TokensOf(r.Context(), session)
	if err != nil {
		return err
	}
	if err := s.options.People.EndSession(r.Context(), session); err != nil {
		return err
	}
	s.options.OnSignIn(principal.With(r.Context(), who), "logout", s.options.Browsers.Proxies.Client(r), true)
	cookie.In(r, s.options.Browsers).Set(w, cookie.Session, "", time.Time{})
	http.Redirect(w, r, s.signOutAt(r.Context(), stored), http.StatusSeeOther)
	return nil
}

// signOutAt is the address that ends the session at its provider; ours if the provider has
// none, or cannot be reached.
func (s *Service) signOutAt(ctx context.Context, stored people.Stored) string {
	p, ok := s.providers[stored.Provider]
	if !ok {
		return "/"
	}
	at, err := p.remote.Endpoints(ctx)
	u, parseErr := url.Parse(at.EndSession)
	if err != nil || parseErr != nil || at.EndSession == "" {
		return "/"
	}
	query := u.Query()
	query.Set("id_token_hint", stored.Tokens.ID)
	query.Set("client_id", p.ClientID)
	query.Set("post_logout_redirect_uri", s.options.PublicURL+"/")
	u.RawQuery = query.Encode()
	return u.String()
}

// ended ends sessions that a provider says have ended (OpenID Connect Back-Channel Logout).
func (s *Service) ended(w http.ResponseWriter, r *http.Request) error {
	p, err := s.named(r.PathValue("provider"))
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	claims, err := p.remote.VerifyLogout(r.Context(), r.PostFormValue("logout_token"))
	if err != nil {
		return fault.New(fault.InvalidParams, "%s", err.Error())
	}
	n, err := s.options.People.EndRemote(r.Context(), p.Name, claims.Text("sid"), p.identity(claims))
	if err == nil && claims.Text("sid") == "" { // everywhere
		err = s.endTokensAt(r.Context(), p, p.identity(claims))
	}
	if err != nil {
		return err
	}
	s.options.Log.InfoContext(r.Context(), "sessions ended by their provider", "provider", p.Name, "sessions", n)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}
