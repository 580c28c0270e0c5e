// Package login serves the HTTP endpoints for logging in to upstreams: the API that
// starts a login, and the callback address of OAuth.
package login

import (
	"context"
	"crypto/subtle"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

// Logins performs the logins.
type Logins interface {
	Begin(ctx context.Context, upstream string, how Method) (oauth.Begun, error)
	// Finish completes a login with the callback's query and returns its upstream.
	Finish(ctx context.Context, query url.Values) (upstream string, err error)
	Status(ctx context.Context, upstream string) (oauth.Status, error)
	Logout(ctx context.Context, upstream string) (bool, error)
	// Document is our OAuth client metadata; nil if it has no public address.
	Document() any
}

// Method is how a login is done.
type Method struct {
	Device bool // with a device code, instead of in a browser
	Bound  bool // only the browser that began the login may finish it
}

// CallbackPath is the path of the OAuth redirect URI.
const CallbackPath = "/oauth/callback"

const documentPath = "/oauth/client.json"

// Routes are the package's paths and the scope that each requires.
func Routes(logins Logins, browsers netguard.Browsers) []principal.Route {
	return []principal.Route{
		{Pattern: "POST /api/v1/upstreams/{namespace}/login", Scope: principal.Admin, Write: func(w http.ResponseWriter, r *http.Request) error { return begin(logins, browsers, w, r) }},
		{Pattern: "GET /api/v1/upstreams/{namespace}/login", Scope: principal.Read, Serve: func(r *http.Request) (any, error) {
			return logins.Status(r.Context(), r.PathValue("namespace"))
		}},
		{Pattern: "DELETE /api/v1/upstreams/{namespace}/login", Scope: principal.Admin, Serve: func(r *http.Request) (any, error) {
			was, err := logins.Logout(r.Context(), r.PathValue("namespace"))
			return map[string]bool{"logged_out": was}, err
		}},
		// Redirected browsers and authorization servers have no API key.
		{Pattern: "GET " + CallbackPath, Scope: principal.Open, Handler: ownBrowser(Callback(logins.Finish), browsers)},
		{Pattern: "GET " + documentPath, Scope: principal.Open, Serve: func(*http.Request) (any, error) { return document(logins) }},
	}
}

func document(logins Logins) (any, error) {
	metadata := logins.Document()
	if metadata == nil {
		return nil, fault.New(fault.NotFound, "there is no client metadata document").
			WithHint("set oauth.client_metadata_url to this server's public address")
	}
	return metadata, nil
}

// begin starts a login. The body is {"method": "browser" | "device"} or empty.
func begin(logins Logins, browsers netguard.Browsers, w http.ResponseWriter, r *http.Request) error {
	var want struct {
		Method string `json:"method"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		err = httpjson.Decode(body, &want)
	}
	if fault.CodeOf(err) == fault.InvalidParams {
		return err
	}
	if err != nil || want.Method != "" && want.Method != "browser" && want.Method != "device" {
		return fault.New(fault.InvalidParams, "the body has no valid method").WithHint(`use {"method": "browser"} or {"method": "device"}`)
	}
	begun, err := logins.Begin(r.Context(), r.PathValue("namespace"), Method{Device: want.Method == "device", Bound: isBrowser(r, browsers)})
	if err != nil {
		return err
	}
	if proof := oauth.BrowserProof(begun.State); proof != "" {
		cookie.In(r, browsers).Set(w, cookie.Login, proof, begun.Expires)
	}
	httpjson.JSON(w, http.StatusOK, begun)
	return nil
}

// isBrowser reports whether a page sent the request. A program has no cookies, so the
// browser that it sends a person to cannot be recognized.
func isBrowser(r *http.Request, browsers netguard.Browsers) bool {
	return r.Header.Get("Origin") != "" || cookie.In(r, browsers).Get(cookie.Session) != ""
}

// ownBrowser refuses a browser that returns from a login which another browser began,
// before anything of the login is used.
func ownBrowser(next http.Handler, browsers netguard.Browsers) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		state := r.URL.Query().Get("state")
		if oauth.IsOwned(state) { // the session is not sent with a redirect of another site, but from a page of ours
			page.Continue(w, r, finishPath+"?"+r.URL.RawQuery)
			return
		}
		proof := oauth.BrowserProof(state)
		if proof == "" {
			next.ServeHTTP(w, r)
			return
		}
		if subtle.ConstantTimeCompare([]byte(proof), []byte(cookie.In(r, browsers).Get(cookie.Login))) != 1 {
			writeResult(w, http.StatusForbidden, result{
				Problem: "another browser began this login", Hint: "begin it in this browser; do not finish logins that somebody sent you a link to",
			})
			return
		}
		cookie.In(r, browsers).Set(w, cookie.Login, "", time.Time{})
		next.ServeHTTP(w, r)
	}
}

// Callback is the OAuth redirect endpoint. It shows the result of the login. Its
// headers keep the address, which holds the authorization code, from other sites.
func Callback(finish func(ctx context.Context, query url.Values) (upstream string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream, err := finish(r.Context(), r.URL.Query())
		outcome := result{Upstream: upstream}
		status := http.StatusOK
		if err != nil {
			outcome.Problem, outcome.Hint = err.Error(), fault.HintOf(err)
			status = http.StatusBadRequest
		}
		writeResult(w, status, outcome)
	})
}

type result struct{ Upstream, Problem, Hint string }

func writeResult(w http.ResponseWriter, status int, outcome result) {
	page.Write(w, status, resultPage, outcome)
}

var resultPage = page.New("result", `{{if .Problem}}<h1>Not logged in</h1><p>{{.Problem}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}
{{else}}<h1>Logged in to {{.Upstream}}</h1><p>You can close this page.</p>{{end}}`)

// Upstreams logs in to upstreams. It implements upstream.Login.
type Upstreams struct {
	*oauth.Logins
	options  oauth.Options
	exchange *exchange.Exchanger
}

// OpenUpstreams opens the stored logins of a database.
func OpenUpstreams(ctx context.Context, store *db.DB, options oauth.Options) (*Upstreams, error) {
	logins, err := oauth.Open(ctx, store, options)
	if err != nil {
		return nil, err
	}
	u := &Upstreams{Logins: logins, options: options}
	u.WithExchange(exchange.Options{})
	return u, nil
}

// WithExchange sets how tokens of people's sign-ins are exchanged for those of upstreams.
func (u *Upstreams) WithExchange(o exchange.Options) {
	o.Logins = u.Logins
	u.exchange = exchange.New(o)
}

// exchanged reports whether tokens for a spec are exchanged for those of its owner. The
// connection that all share, which lists the tools, has a login like others.
func exchanged(spec upstream.Spec) bool {
	return spec.Owner != "" && (spec.Login == upstream.LoginExchange || spec.Login == upstream.LoginIDJAG)
}

func exchangeServer(spec upstream.Spec) exchange.Server {
	s := exchange.Server{Server: oauthServer(spec), Method: spec.Login, Audience: spec.OAuth.Audience, Subject: spec.OAuth.Subject}
	s.Person, s.Org, _ = principal.SplitPersonID(spec.Owner)
	return s
}

func oauthServer(spec upstream.Spec) oauth.Server {
	o := spec.OAuth
	return oauth.Server{Name: spec.Name, Owner: spec.Owner, Org: spec.Person.Org, URL: spec.URL, Trusted: spec.Trusted, CAFile: spec.CAFile, Settings: oauth.Settings{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientKey: o.ClientKey, Scopes: o.Scopes, Issuer: o.Issuer, Grant: o.Grant,
		TokenURL: o.TokenURL,
	}}
}

// Token implements upstream.Login.
func (u *Upstreams) Token(ctx context.Context, spec upstream.Spec) (string, error) {
	if exchanged(spec) {
		return u.exchange.Token(ctx, exchangeServer(spec))
	}
	return u.Logins.Token(ctx, oauthServer(spec))
}

// Refused implements upstream.Login.
func (u *Upstreams) Refused(ctx context.Context, spec upstream.Spec, status int, challenge, token string) (string, error) {
	refusal := oauth.Refusal{Status: status, Challenge: oauth.ParseChallenge(challenge), Token: token}
	if exchanged(spec) {
		return u.exchange.Refused(ctx, exchangeServer(spec), refusal)
	}
	return u.Logins.Refused(ctx, oauthServer(spec), refusal)
}

// Start starts a login. For a login with a device code it also returns the function
// that waits until the person has agreed.
func (u *Upstreams) Start(ctx context.Context, spec upstream.Spec, device bool, back oauth.Return) (oauth.Begun, func(context.Context) error, error) {
	if spec.OAuth.Grant == oauth.GrantCredentials {
		return oauth.Begun{}, nil, fault.New(fault.Conflict, "upstream %s logs in by itself, with client credentials", spec.Name)
	}
	addresses := spec.Addresses()
	if len(addresses) == 0 {
		return oauth.Begun{}, nil, fault.New(fault.InvalidParams, "upstream %s is not reached over HTTP, so it has no login", spec.Name).
			WithHint("give a program its credentials in env")
	}
	server, err := u.Locate(ctx, oauthServer(spec), addresses)
	if err != nil {
		return oauth.Begun{}, nil, err
	}
	if device || spec.OAuth.Grant == oauth.GrantDevice {
		return u.Device(ctx, server)
	}
	begun, err := u.Begin(ctx, server, back)
	return begun, nil, err
}

// StatusOf returns the login to an upstream at the first of its addresses that has one.
func (u *Upstreams) StatusOf(ctx context.Context, spec upstream.Spec) (oauth.Status, error) {
	best := oauth.Status{State: oauth.StateNone}
	for _, address := range spec.Addresses() {
		spec.URL = address
		st, err := u.Status(ctx, oauthServer(spec))
		if err != nil || st.LoggedIn {
			return st, err
		}
		if best.State == oauth.StateNone {
			best = st
		}
	}
	return best, nil
}

var _ upstream.Login = (*Upstreams)(nil)

// OwnLogin is the login of a person to an upstream, as the API shows it.
type OwnLogin struct {
	Upstream string    `json:"upstream"`
	State    string    `json:"state"`             // none, active or needs_login
	Account  string    `json:"account,omitempty"` // of the person there, if the server tells
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of the token; it is renewed by itself if that is possible
	Connect  string    `json:"connect"`          // the page on which the person logs in
	Link     string    `json:"link,omitempty"`   // the same, with the address of this server
}

// OwnLogins returns the logins of whoever asks to all upstreams that require one of each
// person.
func (s *Service) OwnLogins(ctx context.Context) ([]OwnLogin, error) {
	if _, err := ownAccount(principal.Of(ctx)); err != nil {
		return nil, err
	}
	names := []string{}
	for _, status := range s.options.Manager.List() {
		if hasOwnLogins(status.Desired) {
			names = append(names, status.Name)
		}
	}
	list := []OwnLogin{}
	for _, name := range principal.Of(ctx).Visible(names) {
		own, err := s.ownLogin(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			continue // it is hidden, or was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, own)
	}
	slices.SortFunc(list, func(a, b OwnLogin) int { return strings.Compare(a.Upstream, b.Upstream) })
	return list, nil
}

// hasOwnLogins reports whether people log in to an upstream one by one.
func hasOwnLogins(spec upstream.Spec) bool {
	return spec.Owner == "" && spec.Login == upstream.LoginEach && spec.OAuth.Grant != oauth.GrantCredentials && len(spec.Addresses()) > 0
}

// ownLogin returns the login of the principal in ctx to one upstream.
func (s *Service) ownLogin(ctx context.Context, name string) (OwnLogin, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return OwnLogin{}, err
	}
	status, err := s.upstreams.StatusOf(ctx, spec)
	name = principal.Of(ctx).NameOf(spec.Name)
	own := OwnLogin{
		Upstream: name, State: status.State, Account: status.Account, Scopes: status.Scopes, Expires: status.Expires,
		Connect: ConnectPath + url.PathEscape(name),
	}
	if connect := s.upstreams.options.Connect; connect != nil {
		own.Link = connect(name)
	}
	return own, err
}

// ownSpec returns the spec of an upstream for the account of the principal in ctx. The name is
// the principal's: that of an upstream of its organisation comes before one of the server.
func (s *Service) ownSpec(ctx context.Context, name string) (upstream.Spec, error) {
	who := principal.Of(ctx)
	spec, err := s.spec(who.Namespace(name, func(space string) bool { _, ok := s.options.Manager.Status(space); return ok }))
	switch {
	case err != nil || !who.CanSee(spec.Name, ""):
		return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q", name).
			WithHint("it may be of another organisation than the one that you act in; GET /api/v1/me/logins lists those that you log in to")
	case spec.Login != upstream.LoginEach:
		return spec, fault.New(fault.Conflict, "people do not log in to upstream %s one by one", name).
			WithHint("an administrator changes that with login = \"each\"")
	}
	spec.Owner, spec.Person.Org = who.LoginOwner(), who.Org
	return spec, nil
}

// BeginOwn begins the login of the principal in ctx.
func (s *Service) BeginOwn(ctx context.Context, name string, back oauth.Return) (oauth.Begun, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return oauth.Begun{}, err
	}
	back.URL = s.options.RedirectURL()
	begun, err := s.start(ctx, spec, false, back)
	begun.Upstream = principal.Of(ctx).NameOf(begun.Upstream)
	return begun, err
}

// FinishOwn completes the login of a person.
func (s *Service) FinishOwn(ctx context.Context, query url.Values, by oauth.Visitor) (oauth.Finished, error) {
	done, err := s.upstreams.FinishOwn(ctx, query, by)
	if err == nil {
		s.finished(ctx, done.Upstream, done.Owner)
	}
	done.Upstream = principal.Of(ctx).NameOf(done.Upstream)
	return done, err
}

// EndOwn ends the login of the principal in ctx.
func (s *Service) EndOwn(ctx context.Context, name string) error {
	if _, err := ownAccount(principal.Of(ctx)); err != nil {
		return err
	}
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return err
	}
	was, err := s.upstreams.End(ctx, spec.Name, spec.Owner)
	if err == nil && !was {
		err = fault.New(fault.NotFound, "you are not logged in to %s", name)
	}
	if err != nil {
		return err
	}
	s.options.Audit(ctx, "upstream.logout", spec.Name, ownerDetail(spec.Owner))
	return nil
}

// LoggedIn reports whether the principal in ctx has a login of its own to an upstream.
func (s *Service) LoggedIn(ctx context.Context, name string) (bool, error) {
	spec, err := s.ownSpec(ctx, name)
	if err != nil {
		return false, err
	}
	status, err := s.upstreams.StatusOf(ctx, spec)
	return status.LoggedIn, err
}

// AwaitLogin waits until the principal in ctx has a login of its own to an upstream.
func (s *Service) AwaitLogin(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if in, err := s.LoggedIn(ctx, name); err != nil || in {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// loginsChanged wakes up all that wait for a login.
func (s *Service) loginsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// EndOf ends all logins of a person, by their id, in a transaction of others: they have left.
func EndOf(ctx context.Context, tx *db.Tx, person string) error {
	return oauth.EndOf(ctx, tx, principal.PersonPrefix+person)
}
