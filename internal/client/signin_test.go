package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// startPeople starts a server at which people sign in, and returns its address.
func startPeople(t *testing.T, c clock.Clock) string {
	t.Helper()
	provider := oauthtest.NewProvider(t, oauthtest.Claims{"sub": "ada-1", "name": "Ada"})
	server := httptest.NewUnstartedServer(nil)
	at := "http://" + server.Listener.Addr().String()
	browsers := netguard.Browsers{PublicURL: at}
	store := dbtest.Open(t, dbtest.SQLite(t))
	people, err := identity.Open(t.Context(), store, identity.Options{
		PublicURL: at, Browsers: browsers, Client: httpjsontest.Client, Clock: c,
		Key:   func() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil },
		Audit: func(context.Context, string, string, []byte) {},
		Providers: []signin.Provider{{
			Name: "corp", Issuer: provider.URL, ClientID: oauthtest.ClientID, Everybody: []string{"author"},
			Secret: func() (secret.Text, error) { return secret.New(oauthtest.ClientSecret), nil },
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := apikey.Open(t.Context(), store, apikey.Options{People: people})
	if err != nil {
		t.Fatal(err)
	}
	auth := httpauth.New(httpauth.Options{Keys: keys, People: people, Browsers: browsers})
	t.Cleanup(auth.Close)
	server.Config.Handler = auth.Mux(slices.Concat(auth.Routes(), people.Routes()))
	server.Start()
	t.Cleanup(server.Close)
	return at
}

// TestSignInWithADeviceCode checks that a person signs in on the command line, that the
// tokens are private, renewed, and sent to no other server, and that signing out ends them.
func TestSignInWithADeviceCode(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Now())
	at, other := startPeople(t, virtual), startPeople(t, virtual)
	s := SignIns{Path: filepath.Join(t.TempDir(), "state", "logins.json"), Clock: virtual}
	decide := func(decision string) func(Device) {
		return func(d Device) {
			b := identitytest.New(t)
			page := b.Open(t, d.URL)
			if !strings.Contains(page.Body, d.Code) {
				t.Errorf("the page does not show %s: %s", d.Code, page.Body)
			}
			b.Submit(t, page, map[string]string{"decision": decision})
			go func() {
				if virtual.AwaitSleepers(t.Context(), 1) == nil {
					virtual.Advance(5 * time.Second)
				}
			}()
		}
	}
	if err := s.SignIn(t.Context(), at, "", Access{}, decide("deny")); fault.CodeOf(err) != fault.Denied {
		t.Errorf("denied: %v", err)
	}
	if err := s.SignIn(t.Context(), at, "", Access{}, decide("allow")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	me := func(token secret.Text) string {
		raw, err := Request(t.Context(), at, Access{Key: token}, http.MethodGet, "/api/v1/me", nil)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	first, err := s.Token(t.Context(), at+"/mcp", Access{})
	if err != nil || !strings.Contains(me(first), `"name":"Ada"`) {
		t.Fatalf("%v, %s", err, me(first))
	}
	if token, err := s.Token(t.Context(), other, Access{}); err != nil || !token.IsZero() {
		t.Errorf("a token for another server: %v", err)
	}
	virtual.Advance(2 * time.Hour)
	second, err := s.Token(t.Context(), at, Access{})
	if err != nil || second.Reveal() == first.Reveal() || !strings.Contains(me(second), `"name":"Ada"`) {
		t.Errorf("renewed: %v, %s", err, me(second))
	}
	if was, err := s.SignOut(t.Context(), at, Access{}); err != nil || !was {
		t.Errorf("%v, %v", was, err)
	}
	if text := me(second); strings.Contains(text, "Ada") {
		t.Errorf("after signing out: %s", text)
	}
	if token, err := s.Token(t.Context(), at, Access{}); err != nil || !token.IsZero() {
		t.Errorf("a token after signing out: %v", err)
	}
	if was, err := s.SignOut(t.Context(), at, Access{}); err != nil || was {
		t.Errorf("twice: %v, %v", was, err)
	}
}

// TestSignInAtAnotherAddress checks that tokens are not taken from a server that calls
// itself otherwise, or names endpoints of another.
func TestSignInAtAnotherAddress(t *testing.T) {
	t.Parallel()
	var metadata atomic.Value // string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metadata.Load().(string))) }))
	t.Cleanup(server.Close)
	s := SignIns{Path: filepath.Join(t.TempDir(), "logins.json")}
	show := func(Device) { t.Error("a login has begun") }
	metadata.Store(`{"issuer":"https://hub.example"}`)
	if err := s.SignIn(t.Context(), server.URL, "", Access{}, show); fault.CodeOf(err) != fault.Denied || !strings.Contains(fault.HintOf(err), "luanette login https://hub.example") {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
	metadata.Store(`{"issuer":"` + server.URL + `","device_authorization_endpoint":"https://evil.example/device"}`)
	if err := s.SignIn(t.Context(), server.URL, "", Access{}, show); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("%v", err)
	}
}
