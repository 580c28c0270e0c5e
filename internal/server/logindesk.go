package server

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

// LoginDesk is where the command line logs in to upstreams: with the database, or
// at a running server.
type LoginDesk interface {
	// Login shows a person what to do and waits until he has done it.
	Login(ctx context.Context, upstream string, device bool, show func(oauth.Begun)) error
	Logout(ctx context.Context, upstream string) (bool, error)
	Close() error
}

// OpenLogins is a desk at the database of a configuration. It knows the upstreams
// of the configuration only.
func OpenLogins(ctx context.Context, config *config.Loaded, options Options) (LoginDesk, error) {
	specs, _, err := config.UpstreamSpecs(options.Env)
	if err != nil {
		return nil, err
	}
	secrets := config.SecretFinder(options.Env)
	store, err := config.OpenDatabase(ctx, secrets)
	if err != nil {
		return nil, err
	}
	l, err := openLogins(ctx, store, config, secrets, slog.New(slog.NewTextHandler(options.Stderr, nil)))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &localLogins{l, store, specs, config}, nil
}

type localLogins struct {
	logins *logins
	store  *db.DB
	specs  []upstream.Spec
	config *config.Loaded
}

func (d *localLogins) spec(name string) (upstream.Spec, error) {
	names := make([]string, len(d.specs))
	for i, spec := range d.specs {
		if names[i] = spec.Name; spec.Name == name {
			return spec, nil
		}
	}
	return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q in the configuration", name).
		WithHint("there are: %s; for one that was added to a running server use --server", strings.Join(names, ", "))
}

func (d *localLogins) Login(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	spec, err := d.spec(name)
	if err != nil {
		return err
	}
	if device || spec.OAuth.Grant == oauth.GrantDevice {
		begun, wait, err := d.logins.begin(ctx, spec, true, "")
		if err != nil {
			return err
		}
		show(begun)
		return d.did(ctx, "upstream.login", name, wait(ctx))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", spec.OAuth.RedirectPort))
	if err != nil {
		return fault.Wrap(fault.Config, err, "wait for the browser").WithHint("choose another redirect_port, or none")
	}
	begun, _, err := d.logins.begin(ctx, spec, false, "http://"+listener.Addr().String()+login.CallbackPath)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	show(begun)
	return d.did(ctx, "upstream.login", name, d.comeBack(ctx, listener, begun))
}

// did keeps what went well.
func (d *localLogins) did(ctx context.Context, action, name string, err error) error {
	if err != nil {
		return err
	}
	return didAlone(ctx, d.store, d.config, action, name)
}

// comeBack waits for the browser. Answers that belong to no login of ours do not
// end the wait: anybody on this machine can send some.
func (d *localLogins) comeBack(ctx context.Context, listener net.Listener, begun oauth.Begun) error {
	ended := make(chan error, 1)
	finish := func(ctx context.Context, back url.Values) (string, error) {
		name, err := d.logins.Finish(ctx, back)
		if back.Get("state") == begun.State {
			select {
			case ended <- err:
			default: // it came back already
			}
		}
		return name, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+login.CallbackPath, login.Callback(finish))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, cancel := context.WithDeadlineCause(ctx, begun.Expires, fault.New(fault.Timeout, "nobody agreed in time").WithHint("begin again"))
	defer cancel()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	leaving, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer done()
	if server.Shutdown(leaving) != nil { // the page may be on its way to the browser
		_ = server.Close()
	}
	<-served
	return err
}

func (d *localLogins) Logout(ctx context.Context, name string) (bool, error) {
	gone, err := d.logins.Logout(ctx, name)
	return gone, d.did(ctx, "upstream.logout", name, err)
}

func (d *localLogins) Close() error { return d.store.Close() }

// ConnectLogins is a desk at the server that runs at address, which key opens.
func ConnectLogins(address string, key secret.Text) (LoginDesk, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fault.New(fault.InvalidParams, "%q is not a server's address", address)
	}
	return &remoteLogins{u.Scheme + "://" + u.Host, key}, nil
}

type remoteLogins struct {
	base string
	key  secret.Text
}

func (d *remoteLogins) ask(ctx context.Context, method, name, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, d.base+"/api/v1/upstreams/"+url.PathEscape(name)+"/login", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if !d.key.IsZero() {
		request.Header.Set("Authorization", "Bearer "+d.key.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "ask the server").WithHint("start it with `luanette serve`, or leave --server away")
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var said struct {
			Error struct{ Code, Message, Hint string } `json:"error"`
		}
		if json.Unmarshal(text, &said) != nil || said.Error.Message == "" {
			return fault.New(fault.Upstream, "the server answered %s", response.Status)
		}
		return fault.New(fault.Code(said.Error.Code), "%s", said.Error.Message).WithHint("%s", said.Error.Hint)
	}
	return json.Unmarshal(text, answer)
}

func (d *remoteLogins) Login(ctx context.Context, name string, device bool, show func(oauth.Begun)) error {
	var before, now oauth.Status
	if err := d.ask(ctx, http.MethodGet, name, "", &before); err != nil {
		return err
	}
	body := `{"method":"browser"}`
	if device {
		body = `{"method":"device"}`
	}
	var begun oauth.Begun
	if err := d.ask(ctx, http.MethodPost, name, body, &begun); err != nil {
		return err
	}
	show(begun)
	for time.Now().Before(begun.Expires) {
		if err := clock.Real().Sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := d.ask(ctx, http.MethodGet, name, "", &now); err != nil {
			return err
		}
		if now.LoggedIn && now.Changed != before.Changed {
			return nil
		}
	}
	return fault.New(fault.Timeout, "nobody agreed in time").WithHint("begin again")
}

func (d *remoteLogins) Logout(ctx context.Context, name string) (bool, error) {
	var answer struct {
		Was bool `json:"logged_out"`
	}
	err := d.ask(ctx, http.MethodDelete, name, "", &answer)
	return answer.Was, err
}

func (d *remoteLogins) Close() error { return nil }
