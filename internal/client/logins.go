package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/login"
)

// Logins logs in to upstreams, with the database or on a running server.
type Logins interface {
	// Login passes to show what the person has to do, and waits until it is done. An upstream
	// that is used with the account of each person is logged in to with that of the caller.
	Login(ctx context.Context, upstream string, device bool, show func(oauth.Begun)) error
	Logout(ctx context.Context, upstream string) (bool, error)
	Close() error
}

// OpenLogins opens the logins of a configuration's database. It knows only the
// upstreams of the configuration.
func OpenLogins(ctx context.Context, loaded *config.Loaded, env config.Environment, log *slog.Logger) (Logins, error) {
	specs, _, err := loaded.UpstreamSpecs(env)
	if err != nil {
		return nil, err
	}
	secrets := loaded.SecretFinder(env)
	store, err := loaded.OpenDatabase(ctx, secrets)
	if err != nil {
		return nil, err
	}
	options := loaded.OAuthOptions(secrets, log)
	options.Proxy = netguard.EnvironmentProxy(env.Lookup)
	upstreams, err := login.OpenUpstreams(ctx, store, options)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &localLogins{upstreams, store, specs, loaded}, nil
}

type localLogins struct {
	upstreams *login.Upstreams
	store     *db.DB
	specs     []upstream.Spec
	config    *config.Loaded
}

func (l *localLogins) spec(name string) (upstream.Spec, error) {
	names := make([]string, len(l.specs))
	for i, spec := range l.specs {
		if names[i] = spec.Name; spec.Name == name {
			if spec.Login == upstream.LoginEach { // calls without a server are those of the local owner
				spec.Owner = principal.LocalID
			}
			return spec, nil
		}
	}
	return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q in the configuration", name).
		WithHint("there are: %s; for one that was added to a running server use --server", strings.Join(names, ", "))
}

func (l *localLogins) Login(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	spec, err := l.spec(name)
	if err != nil {
		return err
	}
	if device || spec.OAuth.Grant == oauth.GrantDevice {
		begun, wait, err := l.upstreams.Start(ctx, spec, true, oauth.Return{})
		if err != nil {
			return err
		}
		show(begun)
		return l.record(ctx, "upstream.login", name, wait(ctx))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", spec.OAuth.RedirectPort))
	if err != nil {
		return fault.Wrap(fault.Config, err, "listen for the browser").WithHint("choose another redirect_port, or omit it")
	}
	back := oauth.Return{URL: "http://" + listener.Addr().String() + login.CallbackPath}
	if spec.Owner != "" {
		back.Browser = rand.Text() // only this process finishes the login
	}
	begun, _, err := l.upstreams.Start(ctx, spec, false, back)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	show(begun)
	return l.record(ctx, "upstream.login", name, l.awaitBrowser(ctx, listener, begun, oauth.Visitor{Owner: spec.Owner, Browser: back.Browser}))
}

// record writes an audit entry for an action that succeeded.
func (l *localLogins) record(ctx context.Context, action, name string, err error) error {
	if err != nil {
		return err
	}
	return recordAudit(ctx, l.store, l.config, action, name)
}

// closeTimeout bounds the wait for the response to the browser.
const closeTimeout = 500 * time.Millisecond

// awaitBrowser serves the OAuth callback until the browser was redirected to it.
// Requests that belong to another login do not end the wait, since any program on
// this machine can send them.
func (l *localLogins) awaitBrowser(ctx context.Context, listener net.Listener, begun oauth.Begun, by oauth.Visitor) error {
	ended := make(chan error, 1)
	finish := func(ctx context.Context, back url.Values) (string, error) {
		done, err := l.upstreams.FinishOwn(ctx, back, by)
		if back.Get("state") == begun.State {
			select {
			case ended <- err:
			default: // it has ended already
			}
		}
		return done.Upstream, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+login.CallbackPath, login.Callback(finish))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, cancel := context.WithDeadlineCause(ctx, begun.Expires, errNoConsent)
	defer cancel()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer done()
	if server.Shutdown(closing) != nil { // lets the page reach the browser
		_ = server.Close()
	}
	<-served
	return err
}

func (l *localLogins) Logout(ctx context.Context, name string) (was bool, err error) {
	if spec, unknown := l.spec(name); unknown == nil && spec.Owner != "" {
		was, err = l.upstreams.End(ctx, name, spec.Owner)
	} else {
		was, err = l.upstreams.Logout(ctx, name)
	}
	return was, l.record(ctx, "upstream.logout", name, err)
}

func (l *localLogins) Close() error { return l.store.Close() }

// errNoConsent ends a login that the person did not complete.
var errNoConsent = fault.New(fault.Timeout, "the login was not completed in time").WithHint("start it again")

// ConnectLogins uses the logins of the server at address.
func ConnectLogins(address string, access Access) (Logins, error) {
	api, err := serverapi.Connect(address, access)
	return &remoteLogins{api}, err
}

type remoteLogins struct{ api serverapi.API }

func loginPath(upstream string) string {
	return "/api/v1/upstreams/" + url.PathEscape(upstream) + "/login"
}

func (l *remoteLogins) Login(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	own, known, err := l.own(ctx, name)
	switch {
	case err != nil:
		return err
	case known:
		return l.loginOwn(ctx, own, show)
	}
	return notOwn(name, l.loginShared(ctx, name, device, show))
}

// loginShared logs in with the account that all callers share.
func (l *remoteLogins) loginShared(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	var before, now oauth.Status
	if err := l.api.SendInto(ctx, http.MethodGet, loginPath(name), nil, &before); err != nil {
		return err
	}
	method := "browser"
	if device {
		method = "device"
	}
	var begun oauth.Begun
	if err := l.api.SendInto(ctx, http.MethodPost, loginPath(name), map[string]string{"method": method}, &begun); err != nil {
		return err
	}
	show(begun)
	for time.Now().Before(begun.Expires) {
		if err := clock.Real().Sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := l.api.SendInto(ctx, http.MethodGet, loginPath(name), nil, &now); err != nil {
			return err
		}
		if now.LoggedIn && now.Changed != before.Changed {
			return nil
		}
	}
	return errNoConsent
}

func (l *remoteLogins) Logout(ctx context.Context, name string) (bool, error) {
	own, known, err := l.own(ctx, name)
	switch {
	case err != nil:
		return false, err
	case known && own.State == oauth.StateNone:
		return false, nil
	case known:
		_, err := l.api.Send(ctx, http.MethodDelete, ownLoginsPath+"/"+url.PathEscape(name), nil)
		return err == nil, err
	}
	var response struct {
		Was bool `json:"logged_out"`
	}
	err = l.api.SendInto(ctx, http.MethodDelete, loginPath(name), nil, &response)
	return response.Was, notOwn(name, err)
}

func (l *remoteLogins) Close() error { return nil }

const ownLoginsPath = "/api/v1/me/logins"

// How long, and how often, to look whether a person has logged in.
const (
	ownLoginWait  = 15 * time.Minute
	ownLoginEvery = time.Second
)

// own returns the caller's own login to an upstream; known is false if the upstream is not
// used with the account of each person, or the caller is none.
func (l *remoteLogins) own(ctx context.Context, name string) (own login.OwnLogin, known bool, err error) {
	var answer struct {
		Logins []login.OwnLogin `json:"logins"`
	}
	err = l.api.SendInto(ctx, http.MethodGet, ownLoginsPath, nil, &answer)
	if fault.CodeOf(err) == fault.Denied { // a key of a machine
		return own, false, nil
	}
	i := slices.IndexFunc(answer.Logins, func(l login.OwnLogin) bool { return l.Upstream == name })
	if err != nil || i < 0 {
		return own, false, err
	}
	return answer.Logins[i], true, nil
}

// loginOwn waits until the person has logged in on the server's page. The page goes on
// without this process, and the server may be restarted meanwhile.
func (l *remoteLogins) loginOwn(ctx context.Context, own login.OwnLogin, show func(oauth.Begun)) error {
	if own.State == oauth.StateActive {
		return nil
	}
	begun := oauth.Begun{Upstream: own.Upstream, URL: own.Link, Expires: time.Now().Add(ownLoginWait)}
	show(begun)
	for time.Now().Before(begun.Expires) {
		if err := clock.Real().Sleep(ctx, ownLoginEvery); err != nil {
			return err
		}
		now, known, err := l.own(ctx, own.Upstream)
		switch {
		case fault.CodeOf(err) == fault.Unavailable && ctx.Err() == nil: // it may be reachable again
		case err != nil:
			return err
		case !known:
			return fault.New(fault.NotFound, "upstream %s is not used with accounts of people any more", own.Upstream)
		case now.State == oauth.StateActive:
			return nil
		}
	}
	return errNoConsent
}

// notOwn explains an error of the login that all callers share to somebody who may have
// meant one of their own.
func notOwn(name string, err error) error {
	if fault.CodeOf(err) != fault.Denied {
		return err
	}
	return fault.Wrap(fault.Denied, err, "upstream %s has one login for all callers", name).
		WithHint("an administrator logs in there. If it is used with the account of each person, sign in with luanette login")
}
