package login_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/ui/login"
)

const redirect = "http://127.0.0.1:4711/oauth/callback"

// managerFake has some upstreams and records which are retried.
type managerFake struct {
	upstreams []upstream.Status
	retried   []string
}

func (m *managerFake) Status(name string) (upstream.Status, bool) {
	i := slices.IndexFunc(m.upstreams, func(s upstream.Status) bool { return s.Name == name })
	if i < 0 {
		return upstream.Status{}, false
	}
	return m.upstreams[i], true
}

func (m *managerFake) List() []upstream.Status { return m.upstreams }

func (m *managerFake) Retry(name string) { m.retried = append(m.retried, name) }

// fixture is a service for the upstream docs, which requires a login at a site.
type fixture struct {
	*login.Service
	site      *oauthtest.Site
	upstreams *login.Upstreams
	manager   *managerFake
	clock     *clock.Virtual
	audited   []string
	log       bytes.Buffer
	waits     []func(context.Context) // functions that the service runs in the background
}

func setup(t *testing.T) *fixture {
	t.Helper()
	return setupOn(t, dbtest.Open(t, dbtest.SQLite(t)))
}

func setupOn(t *testing.T, store *db.DB) *fixture {
	t.Helper()
	site := oauthtest.New(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	f := &fixture{site: site, clock: clock.NewVirtual(time.Now()), manager: &managerFake{}}
	for _, spec := range []upstream.Spec{
		{Name: "docs", Settings: upstream.Settings{URL: site.URL()}, Trusted: true},
		{Name: "program", Settings: upstream.Settings{Command: "server"}},
		{Name: "robot", Settings: upstream.Settings{URL: site.URL(), OAuth: upstream.OAuth{Grant: oauth.GrantCredentials}}},
		{Name: "hidden", Settings: upstream.Settings{URL: site.URL()}},
	} {
		f.manager.upstreams = append(f.manager.upstreams, upstream.Status{Name: spec.Name, State: upstream.StateNeedsAuth, Desired: spec})
	}
	var err error
	f.upstreams, err = login.OpenUpstreams(t.Context(), store, oauth.Options{
		Key:         func() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil },
		Clock:       f.clock,
		MetadataURL: "https://luanette.example/oauth/client.json",
		Connect:     func(upstream string) string { return "https://hub.example/connect/" + upstream },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Service = f.open()
	return f
}

// open returns a service on the same database, like that of another process.
func (f *fixture) open() *login.Service {
	return login.NewService(f.upstreams, login.ServiceOptions{
		Manager:     f.manager,
		Hidden:      func(name string) bool { return name == "hidden" },
		RedirectURL: func() string { return redirect },
		Session:     session,
		Audit: func(ctx context.Context, action, subject string, _ []byte) {
			f.audited = append(f.audited, fmt.Sprint(action, " ", subject, " by ", principal.Of(ctx).Name))
		},
		Go:  func(wait func(context.Context)) { f.waits = append(f.waits, wait) },
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
}

// login logs in to docs with a browser.
func (f *fixture) login(t *testing.T) {
	t.Helper()
	begun, err := f.Begin(t.Context(), "docs", login.Method{})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := f.Finish(t.Context(), f.site.Agree(t, begun.URL).Query()); err != nil || name != "docs" {
		t.Fatalf("finished the login of %q: %v %v", name, err, f.site.Mistakes())
	}
}

// TestLoginLogout checks that a login is stored and audited, and connects the upstream.
func TestLoginLogout(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if status, err := f.Status(t.Context(), "docs"); err != nil || status.LoggedIn {
		t.Errorf("before the login: %+v, %v", status, err)
	}
	f.login(t)
	if status, err := f.Status(t.Context(), "docs"); err != nil || !status.LoggedIn || status.Issuer != f.site.Issuer.URL {
		t.Errorf("after the login: %+v, %v", status, err)
	}
	if !slices.Equal(f.manager.retried, []string{"docs"}) {
		t.Errorf("connected again: %q", f.manager.retried)
	}
	if was, err := f.Logout(t.Context(), "docs"); err != nil || !was {
		t.Errorf("logout: %t, %v", was, err)
	}
	if status, err := f.Status(t.Context(), "docs"); err != nil || status.LoggedIn {
		t.Errorf("after the logout: %+v, %v", status, err)
	}
	if want := []string{"upstream.login docs by local", "upstream.logout docs by local"}; !slices.Equal(f.audited, want) {
		t.Errorf("audited %q, want %q", f.audited, want)
	}
	if mistakes := f.site.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
}

func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for name, want := range map[string]fault.Code{"nothing": fault.NotFound, "hidden": fault.NotFound, "program": fault.InvalidParams, "robot": fault.Conflict} {
		if begun, err := f.Begin(t.Context(), name, login.Method{}); fault.CodeOf(err) != want {
			t.Errorf("a login to %s: %+v, %v, want %s", name, begun, err, want)
		}
	}
	if _, err := f.Status(t.Context(), "hidden"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the status of a hidden upstream: %v", err)
	}
	if _, err := f.Logout(t.Context(), "hidden"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a logout from a hidden upstream: %v", err)
	}
	if name, err := f.Finish(t.Context(), map[string][]string{"state": {"guessed"}, "code": {"x"}}); err == nil {
		t.Errorf("a guessed state logged in to %s", name)
	}
	if len(f.audited) > 0 || len(f.manager.retried) > 0 {
		t.Errorf("audited %q, connected %q", f.audited, f.manager.retried)
	}
}

// TestDeviceLogin checks that the service waits in the background for the person, and
// audits the login as theirs who began it.
func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	for _, agrees := range []bool{true, false} {
		f := setup(t)
		ada := principal.Principal{ID: "key:ada", Name: "ada", Scopes: []principal.Scope{principal.Admin}}
		begun, err := f.Begin(principal.With(t.Context(), ada), "docs", login.Method{Device: true})
		if err != nil || begun.Code == "" || len(f.waits) != 1 {
			t.Fatalf("began %+v, %v; %d functions wait", begun, err, len(f.waits))
		}
		waiting, stop := context.WithCancel(t.Context())
		if agrees {
			f.site.AgreeOnDevice()
		} else {
			stop() // the server closes
		}
		done := make(chan struct{})
		go func() { defer close(done); defer stop(); f.waits[0](waiting) }()
		for f.clock.AwaitSleepers(waiting, 1) == nil { // until it has polled and ends
			f.clock.Advance(time.Second)
		}
		<-done
		if agrees && !slices.Equal(f.audited, []string{"upstream.login docs by ada"}) {
			t.Errorf("audited %q", f.audited)
		}
		if !agrees && (len(f.manager.retried) > 0 || !strings.Contains(f.log.String(), "not logged in")) {
			t.Errorf("connected %q without consent; log: %s", f.manager.retried, &f.log)
		}
	}
}

// TestCheck checks that an upstream is connected once for each login that another
// process stored.
func TestCheck(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.open()
	check := func(want int) {
		t.Helper()
		f.manager.retried = nil
		if err := other.Check(t.Context()); err != nil || len(f.manager.retried) != want {
			t.Errorf("connected %q, %v, want %d", f.manager.retried, err, want)
		}
	}
	check(0)
	f.login(t)
	check(1)
	check(0)
	f.login(t)
	check(1)
	f.login(t)
	f.manager.upstreams[0].State = upstream.StateConnected
	check(0)
}

// TestToken checks that the connection gets the token of the login, and another one when
// the server refuses it.
func TestToken(t *testing.T) {
	t.Parallel()
	f := setup(t)
	docs := f.manager.upstreams[0].Desired
	f.login(t)
	token, err := f.upstreams.Token(t.Context(), docs)
	if err != nil || token == "" {
		t.Fatalf("token %q, %v", token, err)
	}
	f.site.Expire()
	renewed, err := f.upstreams.Refused(t.Context(), docs, http.StatusUnauthorized, `Bearer error="invalid_token"`, token)
	if err != nil || renewed == "" || renewed == token {
		t.Errorf("renewed %q after %q, %v", renewed, token, err)
	}
	f.site.Revoke()
	if again, err := f.upstreams.Refused(t.Context(), docs, http.StatusUnauthorized, "Bearer", renewed); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("after the login was revoked: %q, %v", again, err)
	}
}

func TestClientDocument(t *testing.T) {
	t.Parallel()
	if text := fmt.Sprintf("%+v", setup(t).Document()); !strings.Contains(text, redirect) || !strings.Contains(text, "https://luanette.example/oauth/client.json") {
		t.Errorf("the document is %s", text)
	}
}
