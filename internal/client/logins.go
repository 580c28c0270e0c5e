package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/login"
)

// Logins logs in to upstreams, with the database or on a running server.
type Logins interface {
	// Login passes to show what the person has to do, and waits until it is done.
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
	upstreams, err := login.OpenUpstreams(ctx, store, loaded.OAuthOptions(secrets, log))
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
		begun, wait, err := l.upstreams.Start(ctx, spec, true, "")
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
	begun, _, err := l.upstreams.Start(ctx, spec, false, "http://"+listener.Addr().String()+login.CallbackPath)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	show(begun)
	return l.record(ctx, "upstream.login", name, l.awaitBrowser(ctx, listener, begun))
}

// record writes an audit entry for an action that succeeded.
func (l *localLogins) record(ctx context.Context, action, name string, err error) error {
	if err != nil {
		return err
	}
	return recordAudit(ctx, l.store, l.config, action, name)
}

// awaitBrowser serves the OAuth callback until the browser was redirected to it.
// Requests that belong to another login do not end the wait, since any program on
// this machine can send them.
func (l *localLogins) awaitBrowser(ctx context.Context, listener net.Listener, begun oauth.Begun) error {
	ended := make(chan error, 1)
	finish := func(ctx context.Context, back url.Values) (string, error) {
		name, err := l.upstreams.Finish(ctx, back)
		if back.Get("state") == begun.State {
			select {
			case ended <- err:
			default: // it has ended already
			}
		}
		return name, err
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

func (l *localLogins) Logout(ctx context.Context, name string) (bool, error) {
	was, err := l.upstreams.Logout(ctx, name)
	return was, l.record(ctx, "upstream.logout", name, err)
}

func (l *localLogins) Close() error { return l.store.Close() }

// errNoConsent ends a login that the person did not complete.
var errNoConsent = fault.New(fault.Timeout, "the login was not completed in time").WithHint("start it again")

// ConnectLogins uses the logins of the server at address.
func ConnectLogins(address string, key secret.Text) (Logins, error) {
	u, err := serverURL(address)
	if err != nil {
		return nil, err
	}
	return &remoteLogins{u.Scheme + "://" + u.Host, key}, nil
}

// closeTimeout bounds the wait for the response to the browser.
const closeTimeout = 500 * time.Millisecond

type remoteLogins struct {
	base string
	key  secret.Text
}

func (l *remoteLogins) do(ctx context.Context, method, name, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, l.base+"/api/v1/upstreams/"+url.PathEscape(name)+"/login", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if !l.key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+l.key.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "connect to the server").WithHint("start it with `luanette serve`, or omit --server")
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var problem struct {
			Error struct{ Code, Message, Hint string } `json:"error"`
		}
		if json.Unmarshal(text, &problem) != nil || problem.Error.Message == "" {
			return fault.New(fault.Upstream, "the server responded with %s", response.Status)
		}
		return fault.New(fault.Code(problem.Error.Code), "%s", problem.Error.Message).WithHint("%s", problem.Error.Hint)
	}
	return json.Unmarshal(text, answer)
}

func (l *remoteLogins) Login(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	var before, now oauth.Status
	if err := l.do(ctx, http.MethodGet, name, "", &before); err != nil {
		return err
	}
	body := `{"method":"browser"}`
	if device {
		body = `{"method":"device"}`
	}
	var begun oauth.Begun
	if err := l.do(ctx, http.MethodPost, name, body, &begun); err != nil {
		return err
	}
	show(begun)
	for time.Now().Before(begun.Expires) {
		if err := clock.Real().Sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := l.do(ctx, http.MethodGet, name, "", &now); err != nil {
			return err
		}
		if now.LoggedIn && now.Changed != before.Changed {
			return nil
		}
	}
	return errNoConsent
}

func (l *remoteLogins) Logout(ctx context.Context, name string) (bool, error) {
	var answer struct {
		Was bool `json:"logged_out"`
	}
	err := l.do(ctx, http.MethodDelete, name, "", &answer)
	return answer.Was, err
}

func (l *remoteLogins) Close() error { return nil }
