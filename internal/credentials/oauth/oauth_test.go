package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

const redirect = "http://127.0.0.1:4711/oauth/callback"

// rig is a site, and logins in their own database.
type rig struct {
	*oauthtest.Site
	logins *oauth.Logins
	store  *db.DB
	clock  *clock.Virtual
	server oauth.Server
}

func setup(t testing.TB) *rig {
	t.Helper()
	site := oauthtest.New(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	r := &rig{Site: site, store: store, clock: clock.NewVirtual(time.Now())}
	r.server = oauth.Server{Name: "test", URL: site.URL(), Trusted: true}
	r.logins = r.node(t)
	return r
}

// node returns logins of another process on the same database.
func (r *rig) node(t testing.TB) *oauth.Logins {
	t.Helper()
	l, err := oauth.Open(t.Context(), r.store, oauth.Options{
		Key:     func() (secret.Text, error) { return secret.New("the key of the test, long enough"), nil },
		Clock:   r.clock,
		Connect: func(upstream string) string { return "https://hub.example/connect/" + upstream },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// login logs in with the browser.
func (r *rig) login(t *testing.T) string {
	t.Helper()
	begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := r.logins.Finish(t.Context(), r.Agree(t, begun.URL).Query()); err != nil || name != "test" {
		t.Fatalf("%s: %v %v", name, err, r.Mistakes())
	}
	return r.token(t)
}

func (r *rig) token(t *testing.T) string {
	t.Helper()
	token, err := r.logins.Token(t.Context(), r.server)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (r *rig) blameless(t *testing.T) {
	t.Helper()
	if mistakes := r.Mistakes(); len(mistakes) > 0 {
		t.Errorf("mistakes: %v", mistakes)
	}
}

// Logins reach servers of a private authority with the file of the server.
func TestLoginWithAPrivateAuthority(t *testing.T) {
	t.Parallel()
	r := setup(t)
	file, certificate := certpooltest.New(t)
	site := oauthtest.NewTLS(t, http.NotFoundHandler(), certificate)
	server := oauth.Server{Name: "test", URL: site.URL(), Trusted: true}
	if _, err := r.logins.Begin(t.Context(), server, oauth.Return{URL: redirect}); err == nil || !strings.Contains(fault.HintOf(err), "ca_file") {
		t.Errorf("without: %v, hint %q", err, fault.HintOf(err))
	}
	server.CAFile = file
	if _, err := r.logins.Begin(t.Context(), server, oauth.Return{URL: redirect}); err != nil || len(site.Mistakes()) > 0 {
		t.Errorf("with: %v, mistakes %v", err, site.Mistakes())
	}
}

func TestLoginInABrowser(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if token := r.token(t); token != "" {
		t.Errorf("a token before the login: %s", token)
	}
	token := r.login(t)
	if !strings.HasPrefix(token, "access-") {
		t.Errorf("token %q", token)
	}
	if other, err := r.node(t).Token(t.Context(), r.server); err != nil || other != token {
		t.Errorf("another node has %q %v", other, err)
	}
	st, err := r.logins.Status(t.Context(), r.server)
	if err != nil || !st.LoggedIn || st.Issuer != r.Issuer.URL || !st.Renews {
		t.Errorf("status %+v %v", st, err)
	}
	elsewhere := r.server
	elsewhere.URL = "https://elsewhere.example/mcp"
	if token, err := r.logins.Token(t.Context(), elsewhere); err != nil || token != "" {
		t.Errorf("another address is given %q %v", token, err)
	}
	if was, err := r.logins.Logout(t.Context(), "test"); err != nil || !was || r.token(t) != "" {
		t.Errorf("logout: %v %v", was, err)
	}
	r.blameless(t)
}

func TestStateIsUsedOnce(t *testing.T) {
	t.Parallel()
	r := setup(t)
	begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
	if err != nil {
		t.Fatal(err)
	}
	back := r.Agree(t, begun.URL).Query()
	forged := url.Values{"code": back["code"], "iss": back["iss"], "state": {"guessed"}}
	if _, err := r.logins.Finish(t.Context(), forged); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a guessed state: %v", err)
	}
	if _, err := r.logins.Finish(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if _, err := r.logins.Finish(t.Context(), back); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the same state again: %v", err)
	}
	begun, err = r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
	if err != nil {
		t.Fatal(err)
	}
	late := r.Agree(t, begun.URL).Query()
	r.clock.Advance(time.Hour)
	if _, err := r.logins.Finish(t.Context(), late); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an hour later: %v", err)
	}
	r.blameless(t)
}

func TestResponsesOfOtherIssuersAreRefused(t *testing.T) {
	t.Parallel()
	for _, iss := range []string{"https://evil.example", "-"} {
		r := setup(t)
		r.Iss = iss
		begun, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.logins.Finish(t.Context(), r.Agree(t, begun.URL).Query()); fault.CodeOf(err) != fault.Denied || r.token(t) != "" {
			t.Errorf("iss %s: %v", iss, err)
		}
	}
}

func TestTokensAreRenewedAheadOfTime(t *testing.T) {
	t.Parallel()
	r := setup(t)
	first := r.login(t)
	r.clock.Advance(58 * time.Minute)
	if r.token(t) != first {
		t.Error("renewed too early")
	}
	r.clock.Advance(90 * time.Second)
	second := r.token(t)
	if second == first || r.Refreshes() != 1 {
		t.Errorf("not renewed: %d refreshes", r.Refreshes())
	}
	r.Expire()
	third, err := r.logins.Refused(t.Context(), r.server, oauth.Refusal{Status: 401, Token: second})
	if err != nil || third == second {
		t.Errorf("after a refusal: %q %v", third, err)
	}
	r.blameless(t)
}

// TestOneRenewsForAll refuses many callers on three nodes at the same time. The site
// ends a login whose refresh token is used twice.
func TestOneRenewsForAll(t *testing.T) {
	t.Parallel()
	r := setup(t)
	used := r.login(t)
	r.Expire()
	nodes := []*oauth.Logins{r.logins, r.node(t), r.node(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	renewed := make(chan struct{})
	first := sync.OnceFunc(func() { close(renewed) })
	defer first()
	go func() { // callers that wait for another node poll
		<-renewed // before that, the claim would expire sooner than a slow machine sends its request
		for r.clock.AwaitSleepers(ctx, 1) == nil {
			r.clock.Advance(time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	tokens := make([]string, 30)
	for i := range tokens {
		all.Go(func() {
			var err error
			tokens[i], err = nodes[i%3].Refused(t.Context(), r.server, oauth.Refusal{Status: 401, Token: used})
			if err != nil {
				t.Error(err)
			}
			first()
		})
	}
	all.Wait()
	for _, token := range tokens {
		if token != tokens[0] || token == used {
			t.Errorf("%q beside %q", token, tokens[0])
		}
	}
	if r.Refreshes() != 1 {
		t.Errorf("%d refreshes", r.Refreshes())
	}
	r.blameless(t)
}

func TestEndedLogin(t *testing.T) {
	t.Parallel()
	r := setup(t)
	used := r.login(t)
	r.Revoke()
	_, err := r.logins.Refused(t.Context(), r.server, oauth.Refusal{Status: 401, Token: used})
	if fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(fault.HintOf(err), "luanette upstream login test") {
		t.Errorf("%v, %s", err, fault.HintOf(err))
	}
	if r.token(t) != "" {
		t.Error("an invalid token is still stored")
	}
}

func TestMoreScopes(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Scopes = []string{"read"}
	used := r.login(t)
	r.Change(func() { r.Scopes = []string{"write"} })
	refusal := oauth.Refusal{Status: 403, Token: used, Challenge: oauth.ParseChallenge(`Bearer error="insufficient_scope", scope="write"`)}
	if _, err := r.logins.Refused(t.Context(), r.server, refusal); fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(err.Error(), "write") {
		t.Errorf("%v", err)
	}
	used = r.login(t)
	if st, err := r.logins.Status(t.Context(), r.server); err != nil || strings.Join(st.Scopes, " ") != "read write" {
		t.Errorf("%+v %v", st, err)
	}
	refusal.Token = used
	if _, err := r.logins.Refused(t.Context(), r.server, refusal); fault.CodeOf(err) != fault.Denied {
		t.Errorf("what was granted already: %v", err)
	}
	refusal.Challenge = oauth.Challenge{}
	if _, err := r.logins.Refused(t.Context(), r.server, refusal); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("forbidden without a reason: %v", err)
	}
	r.blameless(t)
}

func TestDeviceLogin(t *testing.T) {
	t.Parallel()
	r := setup(t)
	begun, wait, err := r.logins.Device(t.Context(), r.server)
	if err != nil || begun.Code != "WDJB-MJHT" || begun.URL != r.Issuer.URL+"/activate" {
		t.Fatalf("%+v %v", begun, err)
	}
	over, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		defer end()
		done <- wait(t.Context())
	}()
	agreed := false
	for r.clock.AwaitSleepers(over, 1) == nil { // it waits before the next poll
		if agreed {
			r.AgreeOnDevice()
		}
		r.clock.Advance(time.Second)
		agreed = true
	}
	if err := <-done; err != nil || !agreed {
		t.Errorf("agreed %v: %v", agreed, err)
	}
	if !strings.HasPrefix(r.token(t), "access-") {
		t.Error("no token")
	}
	r.blameless(t)
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Secret = "s3cret"
	r.server.Settings = oauth.Settings{ClientID: "robot", ClientSecret: "s3cret", Grant: oauth.GrantCredentials}
	token, err := r.logins.Refused(t.Context(), r.server, oauth.Refusal{Status: 401})
	if err != nil || !strings.HasPrefix(token, "access-") {
		t.Fatalf("%q %v", token, err)
	}
	r.clock.Advance(2 * time.Hour)
	if fresh := r.token(t); fresh == token || fresh == "" {
		t.Errorf("%q after it expired", fresh)
	}
	r.server.Settings.ClientSecret = "wr0ng"
	r.Expire()
	_, err = r.logins.Refused(t.Context(), r.server, oauth.Refusal{Status: 401, Token: r.token(t)})
	if err == nil || strings.Contains(err.Error()+fault.HintOf(err), "wr0ng") {
		t.Errorf("%v", err)
	}
}

// TestNothingIsStoredInPlainText looks for tokens in every file of the database.
func TestNothingIsStoredInPlainText(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := setup(t)
	store, err := db.Open(t.Context(), "sqlite:"+filepath.Join(folder, "test.db"), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	r.logins = r.node(t)
	token := r.login(t)
	if _, err := r.logins.Begin(t.Context(), r.server, oauth.Return{URL: redirect}); err != nil { // a pending login
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{token, "access-", "refresh-", "client-", "verifier"} {
			if strings.Contains(string(text), hidden) {
				t.Errorf("%s is in %s", hidden, file.Name())
			}
		}
	}
}

// TestARowIsBoundToItsUpstream moves an encrypted row to another name.
func TestARowIsBoundToItsUpstream(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.login(t)
	err := r.store.Exec(t.Context(), `UPDATE oauth_logins SET upstream = 'evil'`)
	if err != nil {
		t.Fatal(err)
	}
	moved := r.server
	moved.Name = "evil"
	if token, err := r.node(t).Token(t.Context(), moved); err == nil || token != "" {
		t.Errorf("token %q %v", token, err)
	}
}
