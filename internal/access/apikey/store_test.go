package apikey_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// testClock is a clock that tests move.
type testClock struct {
	mu sync.Mutex
	at time.Time
}

func (h *testClock) now() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.at }

func (h *testClock) move(d time.Duration) { h.mu.Lock(); defer h.mu.Unlock(); h.at = h.at.Add(d) }

func newTestClock() *testClock { return &testClock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

// opened returns a store, and a function that opens another one on the same database,
// like another node.
func opened(t *testing.T, o apikey.Options) (*apikey.Store, func() *apikey.Store) {
	t.Helper()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	another := func() *apikey.Store {
		keys, err := apikey.Open(t.Context(), store, o)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	return another(), another
}

func create(t *testing.T, r *apikey.Store, k apikey.Key) string {
	t.Helper()
	if k.Scopes == nil {
		k.Scopes = []principal.Scope{principal.MCP}
	}
	_, token, err := r.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestKeyLifecycle(t *testing.T) {
	t.Parallel()
	keys, _ := opened(t, apikey.Options{})
	ctx := t.Context()
	if any, err := keys.HasKeys(ctx); any || err != nil {
		t.Fatalf("a new store has keys: %v", err)
	}
	token := create(t, keys, apikey.Key{Name: "web", Rights: apikey.Rights{
		Scopes: []principal.Scope{principal.Chat, principal.MCP}, Org: "acme", User: "ada",
		Namespaces: []string{"fs"}, Tools: []string{"fs.read*"}, Limits: principal.Limits{Rate: 60, Concurrent: 2, Budget: 100},
	}})
	p, err := keys.Authenticate(ctx, token)
	if err != nil || p.ID != "key:web" || p.Org != "acme" || p.User != "ada" || !p.May(principal.MCP, "") || p.May(principal.Admin, "") ||
		p.CanSee("git", "log") || !p.CanSee("fs", "read_file") || p.Limits.Concurrent != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := keys.Authenticate(ctx, token+"x"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a wrong token: %v", err)
	}
	if _, _, err := keys.Create(ctx, apikey.Key{Name: "web", Rights: apikey.Rights{Scopes: principal.DefaultScopes}}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := keys.Revoke(ctx, "wbe"); fault.CodeOf(err) != fault.NotFound || fault.HintOf(err) != "there are: web" {
		t.Errorf("revoking an unknown one: %v", err)
	}
	if _, err := keys.Revoke(ctx, "web"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Authenticate(ctx, token); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a revoked key is accepted: %v", err)
	}
	if any, _ := keys.HasKeys(ctx); !any {
		t.Error("after the last key was revoked, no key is required")
	}
	if _, err := keys.Current(ctx, p); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the principal of a revoked key is still valid: %v", err)
	}
	if _, _, err := keys.Create(ctx, apikey.Key{Name: "web", Rights: apikey.Rights{Scopes: principal.DefaultScopes}}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a key with the name of a revoked one: %v", err)
	}
}

// TestTokensAreNotStored looks for tokens and cookies in every file of the database.
func TestTokensAreNotStored(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store, err := db.Open(t.Context(), "sqlite:"+filepath.Join(folder, "keys.db"), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := apikey.Open(t.Context(), store, apikey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := create(t, keys, apikey.Key{Name: "web"})
	cookie, _, err := keys.BeginSession(t.Context(), token)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Fatalf("the database has %d files, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(token)) || bytes.Contains(content, []byte(cookie)) {
			t.Errorf("%s contains the token or the cookie", file.Name())
		}
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	keys, _ := opened(t, apikey.Options{Now: clock.now})
	token := create(t, keys, apikey.Key{Name: "ci", Expires: clock.now().Add(time.Hour)})
	if _, err := keys.Authenticate(t.Context(), token); err != nil {
		t.Error(err)
	}
	cookie, p, err := keys.BeginSession(t.Context(), token)
	if err != nil || !p.Expires.Equal(clock.now().Add(time.Hour)) {
		t.Errorf("the session expires at %v, %v", p.Expires, err)
	}
	clock.move(time.Hour)
	if _, err := keys.Authenticate(t.Context(), token); fault.CodeOf(err) != fault.Denied {
		t.Errorf("an expired key is accepted: %v", err)
	}
	if _, err := keys.Session(t.Context(), cookie); err == nil {
		t.Error("the session outlives its key")
	}
	if _, _, err := keys.Create(t.Context(), apikey.Key{Name: "late", Expires: clock.now(), Rights: apikey.Rights{Scopes: principal.DefaultScopes}}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a new key that has expired already: %v", err)
	}
}

// TestNodesShareKeys checks that another node sees a change after a second at the
// latest, and at once when it is notified.
func TestNodesShareKeys(t *testing.T) {
	t.Parallel()
	one, another := opened(t, apikey.Options{})
	two := another()
	changed := make(chan struct{}, 8)
	defer two.Watch(func() { changed <- struct{}{} })()
	token := create(t, one, apikey.Key{Name: "web"})
	if err := two.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-changed
	if _, err := two.Authenticate(t.Context(), token); err != nil {
		t.Errorf("the other node does not know the key: %v", err)
	}
	if _, err := one.Revoke(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if err := two.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-changed
	if _, err := two.Authenticate(t.Context(), token); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the other node accepts the revoked key: %v", err)
	}
}

// TestNodesNotifyEachOtherOfKeys checks that notified nodes refuse a revoked key and
// an ended session, although they read the table only once an hour.
func TestNodesNotifyEachOtherOfKeys(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	stores := [2]*apikey.Store{}
	changed := make(chan struct{}, 8)
	for i := range stores {
		keys, err := apikey.Open(t.Context(), dbtest.Open(t, url), apikey.Options{MaxAge: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = keys
	}
	one, two := stores[0], stores[1]
	defer two.Watch(func() { changed <- struct{}{} })()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		two.Run(ctx)
	}()
	token := create(t, one, apikey.Key{Name: "web"})
	<-changed
	if _, err := two.Authenticate(t.Context(), token); err != nil {
		t.Errorf("the other node does not know the key: %v", err)
	}
	if _, err := one.Revoke(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	<-changed
	if _, err := two.Authenticate(t.Context(), token); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the other node accepts the revoked key: %v", err)
	}
	stop()
	<-ended
}

func TestKeysOfTheConfiguration(t *testing.T) {
	t.Parallel()
	fixed := apikey.Key{Name: "ENGINE_API_KEY", Hash: apikey.HashOf("sesame"), Fixed: true, Rights: apikey.Rights{Scopes: []principal.Scope{principal.Admin}}}
	keys, _ := opened(t, apikey.Options{Fixed: []apikey.Key{fixed}})
	p, err := keys.Authenticate(t.Context(), "sesame")
	if err != nil || !p.Admin() {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := keys.Revoke(t.Context(), "ENGINE_API_KEY"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("revoking it: %v", err)
	}
	create(t, keys, apikey.Key{Name: "web"})
	list, err := keys.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "ENGINE_API_KEY" || list[1].Name != "web" || list[0].Used.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	keys, another := opened(t, apikey.Options{})
	token := create(t, keys, apikey.Key{Name: "web"})
	if _, _, err := keys.BeginSession(t.Context(), "guess"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a session for an unknown token: %v", err)
	}
	var cookies []string
	for range 3 {
		cookie, _, err := keys.BeginSession(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, cookie)
	}
	other := another()
	for _, r := range []*apikey.Store{keys, other} {
		if p, err := r.Session(t.Context(), cookies[0]); err != nil || p.ID != "key:web" {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if err := keys.EndSession(t.Context(), cookies[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Session(t.Context(), cookies[0]); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("an ended session: %v", err)
	}
	if _, err := keys.Session(t.Context(), cookies[1]); err != nil {
		t.Errorf("another session: %v", err)
	}
	if _, err := keys.Revoke(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Session(t.Context(), cookies[1]); err == nil {
		t.Error("the session outlives its key")
	}
	if apikey.SameCSRF(cookies[1], apikey.CSRF(cookies[2])) || !apikey.SameCSRF(cookies[1], apikey.CSRF(cookies[1])) || apikey.SameCSRF(cookies[1], "") {
		t.Error("the CSRF token of one session is valid in another")
	}
}

// TestBudget checks that budgets are counted over nodes and restarts, and start again
// each day.
func TestBudget(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	one, another := opened(t, apikey.Options{Now: clock.now})
	two := another()
	p := principal.Principal{ID: "key:web", Name: "web", Limits: principal.Limits{Budget: 3}}
	spend := func(r *apikey.Store) error { return r.Spend(t.Context(), p) }
	flush := func(stores ...*apikey.Store) {
		for _, r := range stores {
			if err := r.Flush(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range []*apikey.Store{one, two, one} {
		if err := spend(r); err != nil {
			t.Fatal(err)
		}
	}
	flush(one, two, one)
	for i, r := range []*apikey.Store{one, two, another()} {
		err := spend(r)
		if after, ok := principal.RetryAfter(err); !ok || after != 12*time.Hour {
			t.Errorf("node %d: %v, retry after %v", i, err, after)
		}
	}
	clock.move(12 * time.Hour)
	if err := spend(one); err != nil {
		t.Errorf("the next day: %v", err)
	}
	if err := one.Spend(t.Context(), principal.Local()); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}

func BenchmarkFind(b *testing.B) {
	store := dbtest.OpenWith(b, "sqlite:"+filepath.Join(b.TempDir(), "keys.db"), db.Options{})
	keys, err := apikey.Open(b.Context(), store, apikey.Options{})
	if err != nil {
		b.Fatal(err)
	}
	_, token, err := keys.Create(b.Context(), apikey.Key{Name: "web", Rights: apikey.Rights{Scopes: principal.DefaultScopes}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := keys.Authenticate(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNewKeysOfOtherProcesses checks that a key of another process is valid at once,
// and that unknown keys cause only a limited number of reads per second.
func TestNewKeysOfOtherProcesses(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	keys, another := opened(t, apikey.Options{MaxAge: time.Hour, Now: clock.now})
	if p, err := keys.Authenticate(t.Context(), create(t, another(), apikey.Key{Name: "new"})); err != nil || p.Name != "new" {
		t.Errorf("%+v, %v", p, err)
	}
	for range 40 {
		if _, err := keys.Authenticate(t.Context(), "lnt_guess"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("a guess: %v", err)
		}
	}
	if _, err := keys.Authenticate(t.Context(), create(t, another(), apikey.Key{Name: "late"})); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the table is read for every guess: %v", err)
	}
}
