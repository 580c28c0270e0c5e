package oauth_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// TestOneRenewsForAllOfAnOwner lets fifty callers of each owner on two nodes find their
// token expired. The site ends a login whose refresh token is used twice.
func TestOneRenewsForAllOfAnOwner(t *testing.T) {
	t.Parallel()
	r := setup(t)
	owners := []string{"person:ada", "person:bob", "person:ada/acme"}
	used := map[string]string{}
	for _, owner := range owners {
		used[owner] = r.loginOf(t, owner)
	}
	r.Expire()
	nodes := []*oauth.Logins{r.logins, r.node(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var renewed sync.WaitGroup // of one caller of each owner
	renewed.Add(len(owners))
	go func() { // callers that wait for another node poll
		renewed.Wait() // before that, the claim would expire sooner than a slow machine sends its request
		for r.clock.AwaitSleepers(ctx, 1) == nil {
			r.clock.Advance(time.Millisecond)
		}
	}()
	var all sync.WaitGroup
	for _, owner := range owners {
		first := sync.OnceFunc(renewed.Done)
		var mu sync.Mutex
		got := map[string]bool{}
		for i := range 50 {
			all.Go(func() {
				token, err := nodes[i%2].Refused(t.Context(), r.of(owner), oauth.Refusal{Status: 401, Token: used[owner]})
				first()
				mu.Lock()
				defer mu.Unlock()
				if got[token] = true; err != nil || token == used[owner] || len(got) != 1 {
					t.Errorf("%s: %v, tokens %v", owner, err, got)
				}
			})
		}
	}
	all.Wait()
	if r.Refreshes() != len(owners) {
		t.Errorf("%d refreshes", r.Refreshes())
	}
	r.blameless(t)
}

// counted counts the requests to the token endpoint.
func counted(n *atomic.Int32, serve func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)) func(http.ResponseWriter, *http.Request, http.HandlerFunc) {
	return func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
		n.Add(1)
		serve(w, r, next)
	}
}

// TestFailedRenewal renews at an issuer that does not answer as it should. The login stays,
// and callers do not repeat the request again and again.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(http.ResponseWriter, *http.Request, http.HandlerFunc) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		serve func(http.ResponseWriter, *http.Request, http.HandlerFunc)
		after string // the state of the login when the issuer answers again
	}{
		"unavailable":           {status(503, `{"error":"temporarily_unavailable"}`), oauth.StateActive},
		"an error with a grant": {status(500, `{"error":"invalid_grant"}`), oauth.StateActive},
		"too many requests":     {status(429, `slow down`), oauth.StateActive},
		"a proxy's page":        {status(404, `<html>`), oauth.StateActive},
		"no token":              {status(200, `{}`), oauth.StateActive},
		"no answer":             {func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }, oauth.StateActive},
		// The issuer has seen the refresh token and does not accept it again: only a new login helps.
		"a lost answer": {oauthtest.Lose, oauth.StateNeedsLogin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			used := r.loginOf(t, "person:ada")
			r.Expire()
			var requests atomic.Int32
			r.Change(func() { r.AroundToken = counted(&requests, tt.serve) })
			nodes := []*oauth.Logins{r.logins, r.node(t)}
			try := func(node *oauth.Logins) error {
				_, err := node.Refused(t.Context(), r.of("person:ada"), oauth.Refusal{Status: 401, Token: used})
				return err
			}
			for i := range 20 {
				if err := try(nodes[i%2]); fault.CodeOf(err) != fault.Unavailable {
					t.Errorf("attempt %d: %v", i, err)
				}
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests", requests.Load())
			}
			if status, err := nodes[1].Status(t.Context(), r.of("person:ada")); err != nil || status.State != oauth.StateActive {
				t.Errorf("%+v %v", status, err)
			}
			r.Change(func() { r.AroundToken = nil })
			r.clock.Advance(6 * time.Second)
			err := try(nodes[1])
			status, statusErr := nodes[0].Status(t.Context(), r.of("person:ada"))
			if statusErr != nil || status.State != tt.after || (err == nil) != (tt.after == oauth.StateActive) {
				t.Errorf("when it answers again: %v, %+v %v", err, status, statusErr)
			}
		})
	}
}

// Pauses grow as long as the issuer fails, and end with the first renewal.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	r := setup(t)
	used := r.loginOf(t, "person:ada")
	r.Expire()
	var requests atomic.Int32
	r.Change(func() {
		r.AroundToken = counted(&requests, func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { w.WriteHeader(503) })
	})
	for range 600 { // an hour, with a call every six seconds
		_, _ = r.logins.Refused(t.Context(), r.of("person:ada"), oauth.Refusal{Status: 401, Token: used})
		r.clock.Advance(6 * time.Second)
	}
	if n := requests.Load(); n < 10 || n > 20 {
		t.Errorf("%d requests in an hour", n)
	}
}

// TestEndedOwnLogin refuses the refresh token of a person: the row stays and says so.
func TestEndedOwnLogin(t *testing.T) {
	t.Parallel()
	r := setup(t)
	bob := r.loginOf(t, "person:bob")
	used := r.loginOf(t, "person:ada")
	r.Change(func() {
		r.AroundToken = func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		}
	})
	_, err := r.logins.Refused(t.Context(), r.of("person:ada"), oauth.Refusal{Status: 401, Token: used})
	if fault.CodeOf(err) != fault.NeedsAuth || !strings.Contains(fault.HintOf(err), "https://hub.example/connect/test") ||
		!strings.Contains(string(fault.From(err).Details), `"url":"https://hub.example/connect/test"`) {
		t.Errorf("%v, %s, %s", err, fault.HintOf(err), fault.From(err).Details)
	}
	status, err := r.node(t).Status(t.Context(), r.of("person:ada"))
	if err != nil || status.State != oauth.StateNeedsLogin || status.LoggedIn || status.Issuer != r.Issuer.URL || r.tokenOf(t, "person:ada") != "" {
		t.Errorf("%+v %v", status, err)
	}
	if r.tokenOf(t, "person:bob") != bob {
		t.Error("Bob's login has ended too")
	}
	r.Change(func() { r.AroundToken = nil })
	if r.loginOf(t, "person:ada") == "" {
		t.Error("no token after a new login")
	}
	if status, err := r.logins.Status(t.Context(), r.of("person:ada")); err != nil || status.State != oauth.StateActive {
		t.Errorf("after a new login: %+v %v", status, err)
	}
}

// TestNodeDiesWhileItRenews ends a node after it claimed the renewal, before and after the
// issuer has seen the refresh token. Others wait until the claim ends, and read again.
func TestNodeDiesWhileItRenews(t *testing.T) {
	t.Parallel()
	for name, issued := range map[string]bool{"before the request": false, "after the response": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			used := r.loginOf(t, "person:ada")
			r.Expire()
			if issued { // the dead node has used the token, and stored nothing
				r.Change(func() { r.AroundToken = oauthtest.Lose })
				_, _ = r.node(t).Refused(t.Context(), r.of("person:ada"), oauth.Refusal{Status: 401, Token: used})
				r.Change(func() { r.AroundToken = nil })
			}
			until := r.clock.Now().Add(time.Minute)
			r.change(t, `UPDATE oauth_logins SET claimed_until = $1, failures = 0, retry_at = 0`, until.UnixMicro())
			var requests atomic.Int32
			r.Change(func() {
				r.AroundToken = counted(&requests, func(w http.ResponseWriter, q *http.Request, next http.HandlerFunc) {
					if !r.clock.Now().After(until) {
						t.Error("the token was used while another node had the claim")
					}
					next(w, q)
				})
			})
			over, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					_, err := r.logins.Refused(t.Context(), r.of("person:ada"), oauth.Refusal{Status: 401, Token: used})
					if issued != (fault.CodeOf(err) == fault.NeedsAuth) || !issued && err != nil {
						t.Errorf("%v", err)
					}
				})
			}
			go func() { all.Wait(); end() }()
			for r.clock.AwaitSleepers(over, 1) == nil {
				r.clock.Advance(20 * time.Second)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests", requests.Load())
			}
		})
	}
}

// change changes stored logins as another process would.
func (r *rig) change(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := r.store.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}
