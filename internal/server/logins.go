package server

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/login"
)

// logins is the room of logins in the connection manager's words.
type logins struct {
	*oauth.Logins
	options oauth.Options
}

func openLogins(ctx context.Context, store *db.DB, config *config.Loaded, secrets secret.Finder, log *slog.Logger) (*logins, error) {
	options := oauth.Options{
		Key:          func() (secret.Text, error) { return config.OAuthKey(secrets) },
		Resolve:      secrets.Find,
		MetadataURL:  config.OAuth.MetadataURL,
		AllowedHosts: config.MCP.AllowedHosts,
		Log:          log,
	}
	room, err := oauth.Open(ctx, store, options)
	if err != nil {
		return nil, err
	}
	return &logins{room, options}, nil
}

func serverOf(spec upstream.Spec) oauth.Server {
	o := spec.OAuth
	return oauth.Server{Name: spec.Name, URL: spec.URL, Trusted: spec.Trusted, Settings: oauth.Settings{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientKey: o.ClientKey, Scopes: o.Scopes, Issuer: o.Issuer, Grant: o.Grant,
	}}
}

// Token implements upstream.Login.
func (l *logins) Token(ctx context.Context, spec upstream.Spec) (string, error) {
	return l.Logins.Token(ctx, serverOf(spec))
}

// Refused implements upstream.Login.
func (l *logins) Refused(ctx context.Context, spec upstream.Spec, status int, challenge, token string) (string, error) {
	return l.Logins.Refused(ctx, serverOf(spec), oauth.Refusal{Status: status, Challenge: oauth.ParseChallenge(challenge), Token: token})
}

// locate finds the address of a server that wants a login.
func (l *logins) locate(ctx context.Context, spec upstream.Spec) (oauth.Server, error) {
	addresses := spec.Addresses()
	if len(addresses) == 0 {
		return oauth.Server{}, fault.New(fault.InvalidParams, "upstream %s is not reached over HTTP, so there is no logging in to it", spec.Name).
			WithHint("give a program its credentials in env")
	}
	return l.Locate(ctx, serverOf(spec), addresses)
}

// begin starts a login. Of one by device the wait is handed out.
func (l *logins) begin(ctx context.Context, spec upstream.Spec, device bool, redirect string) (oauth.Begun, func(context.Context) error, error) {
	if spec.OAuth.Grant == oauth.GrantCredentials {
		return oauth.Begun{}, nil, fault.New(fault.Conflict, "upstream %s logs in by itself, with client credentials", spec.Name)
	}
	server, err := l.locate(ctx, spec)
	if err != nil {
		return oauth.Begun{}, nil, err
	}
	if device || spec.OAuth.Grant == oauth.GrantDevice {
		return l.Device(ctx, server)
	}
	begun, err := l.Begin(ctx, server, redirect)
	return begun, nil, err
}

// status tells how we stand with a server, at whichever address.
func (l *logins) status(ctx context.Context, spec upstream.Spec) (oauth.Status, error) {
	for _, address := range spec.Addresses() {
		spec.URL = address
		if st, err := l.Status(ctx, serverOf(spec)); err != nil || st.LoggedIn {
			return st, err
		}
	}
	return oauth.Status{}, nil
}

// loginRoutes are those of the HTTP door for logins.
func (srv *Server) loginRoutes() []principal.Route {
	return login.Routes(loginOffice{srv}, netguard.Browsers{Origins: srv.config.MCP.AllowedOrigins})
}

// loginOffice is what that door needs.
type loginOffice struct{ house *Server }

func (o loginOffice) spec(name string) (upstream.Spec, error) {
	s, ok := o.house.upstreams.manager.Status(name)
	if !ok || isSomebodys(name) {
		return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q", name).
			WithHint("`luanette upstream list` names them")
	}
	return s.Desired, nil
}

func (o loginOffice) Begin(ctx context.Context, name string, device bool) (oauth.Begun, error) {
	spec, err := o.spec(name)
	if err != nil {
		return oauth.Begun{}, err
	}
	begun, wait, err := o.house.logins.begin(ctx, spec, device, o.house.redirectURL())
	if err != nil || wait == nil {
		return begun, err
	}
	who := principal.Of(ctx)
	o.house.spawn(func(ctx context.Context) { o.await(principal.With(ctx, who), name, wait) }) // it outlives the request
	return begun, nil
}

// await waits until somebody has agreed on his device.
func (o loginOffice) await(ctx context.Context, name string, wait func(context.Context) error) {
	if err := wait(ctx); err != nil {
		o.house.log.WarnContext(ctx, "not logged in", "upstream", name, "error", err)
		return
	}
	o.house.did(ctx, "upstream.login", name, nil)
	o.house.upstreams.manager.Retry(name)
}

func (o loginOffice) Finish(ctx context.Context, back url.Values) (string, error) {
	name, err := o.house.logins.Finish(ctx, back)
	if err == nil {
		o.house.did(ctx, "upstream.login", name, nil)
		o.house.upstreams.manager.Retry(name)
	}
	return name, err
}

func (o loginOffice) Status(ctx context.Context, name string) (oauth.Status, error) {
	spec, err := o.spec(name)
	if err != nil {
		return oauth.Status{}, err
	}
	return o.house.logins.status(ctx, spec)
}

func (o loginOffice) Logout(ctx context.Context, name string) (bool, error) {
	if _, err := o.spec(name); err != nil {
		return false, err
	}
	o.house.did(ctx, "upstream.logout", name, nil)
	return o.house.logins.Logout(ctx, name)
}

func (o loginOffice) Document() any {
	if o.house.config.OAuth.MetadataURL == "" {
		return nil
	}
	return o.house.logins.options.Document([]string{o.house.redirectURL()})
}

// redirectURL is where browsers come back to.
func (srv *Server) redirectURL() string {
	if srv.config.OAuth.RedirectURL != "" {
		return srv.config.OAuth.RedirectURL
	}
	return srv.address() + login.CallbackPath
}

// loginAt is where a person can begin a login to a server that wants one.
func (u *upstreams) loginAt(s upstream.Status) string {
	base := ""
	if u.address != nil {
		base = u.address()
	}
	if s.State != upstream.StateNeedsAuth || base == "" || len(s.Desired.Addresses()) == 0 {
		return ""
	}
	return base + "/api/v1/upstreams/" + s.Name + "/login"
}

// watchLogins connects servers for which somebody has logged in elsewhere: with
// the command line, or on another node.
func (srv *Server) watchLogins(ctx context.Context) {
	look := srv.lookForLogins()
	srv.work.Go(func() { // it may have been just before a server began to wait
		sub := srv.bus.Subscribe(event.Options{Types: []string{"upstream.needs_auth"}, Mode: event.Latest})
		defer sub.Close()
		for range sub.All(ctx) {
			_ = look(ctx) // who heeds the others does it again
		}
	})
	srv.heed(ctx, oauth.Topic, look)
}

// lookForLogins has servers tried again for which there is another login than when
// it last looked.
func (srv *Server) lookForLogins() func(context.Context) error {
	var looking sync.Mutex
	seen := map[string]int64{}
	return func(ctx context.Context) error {
		looking.Lock()
		defer looking.Unlock()
		for _, s := range srv.upstreams.manager.List() {
			if s.State != upstream.StateNeedsAuth {
				continue
			}
			st, err := srv.logins.status(ctx, s.Desired)
			if err != nil {
				return err
			}
			if st.LoggedIn && st.Version != seen[s.Name] {
				seen[s.Name] = st.Version
				srv.upstreams.manager.Retry(s.Name)
			}
		}
		return nil
	}
}
