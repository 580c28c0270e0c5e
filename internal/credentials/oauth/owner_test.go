package oauth_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// of returns the server with the login of a person.
func (r *rig) of(owner string) oauth.Server {
	s := r.server
	s.Owner = owner
	return s
}

// begin begins the login of a person in their browser, and agrees to it there.
func (r *rig) begin(t *testing.T, owner string) (back url.Values) {
	t.Helper()
	begun, err := r.logins.Begin(t.Context(), r.of(owner), oauth.Return{URL: redirect, Browser: "browser of " + owner, Next: "/next"})
	if err != nil {
		t.Fatal(err)
	}
	return r.Agree(t, begun.URL).Query()
}

// loginOf logs a person in and returns the token.
func (r *rig) loginOf(t *testing.T, owner string) string {
	t.Helper()
	done, err := r.logins.FinishOwn(t.Context(), r.begin(t, owner), oauth.Visitor{Owner: owner, Browser: "browser of " + owner})
	if err != nil || done != (oauth.Finished{Upstream: "test", Owner: owner, Next: "/next"}) {
		t.Fatalf("%+v %v %v", done, err, r.Mistakes())
	}
	return r.tokenOf(t, owner)
}

func (r *rig) tokenOf(t *testing.T, owner string) string {
	t.Helper()
	token, err := r.logins.Token(t.Context(), r.of(owner))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Everybody has a login of their own, beside the one that all share.
func TestOwnersAreSeparate(t *testing.T) {
	t.Parallel()
	r := setup(t)
	shared := r.login(t)
	if token := r.tokenOf(t, "person:ada"); token != "" {
		t.Errorf("without a login of her own, Ada has %s", token)
	}
	ada, bob := r.loginOf(t, "person:ada"), r.loginOf(t, "person:bob")
	if ada == bob || ada == shared || bob == shared || r.token(t) != shared || r.tokenOf(t, "person:ada") != ada {
		t.Errorf("shared %s, Ada's %s, Bob's %s", shared, ada, bob)
	}
	if token, err := r.node(t).Token(t.Context(), r.of("person:bob")); err != nil || token != bob {
		t.Errorf("another node has %q %v for Bob", token, err)
	}
	if _, err := r.logins.Logout(t.Context(), "test"); err != nil || r.token(t) != "" || r.tokenOf(t, "person:ada") != ada {
		t.Errorf("after the end of the shared login: %v", err)
	}
	r.blameless(t)
}

// TestAttackLinkOfSomebodyElse finishes a login that another person began, or another
// browser: a link that somebody sent must not connect the receiver's account.
func TestAttackLinkOfSomebodyElse(t *testing.T) {
	t.Parallel()
	r := setup(t)
	back := r.begin(t, "person:ada")
	for _, by := range []oauth.Visitor{
		{},
		{Owner: "person:bob", Browser: "browser of person:bob"},
		{Owner: "person:ada", Browser: "browser of person:bob"},
		{Owner: "person:bob", Browser: "browser of person:ada"},
		{Owner: "person:ada"},
		{Browser: "browser of person:ada"},
	} {
		if _, err := r.logins.FinishOwn(t.Context(), back, by); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%+v: %v", by, err)
		}
	}
	unmarked := url.Values{"code": back["code"], "iss": back["iss"], "state": {strings.TrimPrefix(back.Get("state"), "o.")}}
	if _, err := r.logins.Finish(t.Context(), unmarked); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("as a shared login: %v", err)
	}
	for _, owner := range []string{"", "person:ada", "person:bob"} {
		if status, err := r.logins.Status(t.Context(), r.of(owner)); err != nil || status.State != oauth.StateNone {
			t.Errorf("%q: %+v %v", owner, status, err)
		}
	}
	if _, err := r.logins.FinishOwn(t.Context(), back, oauth.Visitor{Owner: "person:ada", Browser: "browser of person:ada"}); err != nil {
		t.Errorf("herself: %v", err)
	}
	if _, err := r.logins.Begin(t.Context(), r.of("person:ada"), oauth.Return{URL: redirect}); fault.CodeOf(err) != fault.Denied {
		t.Errorf("without a browser: %v", err)
	}
	r.blameless(t)
}

// TestARowIsBoundToItsOwner gives the encrypted login of one person to another.
func TestARowIsBoundToItsOwner(t *testing.T) {
	t.Parallel()
	for _, thief := range []string{"person:eve", ""} {
		r := setup(t)
		r.loginOf(t, "person:ada")
		err := r.store.Exec(t.Context(), `UPDATE oauth_logins SET owner = $1`, thief)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := r.node(t).Token(t.Context(), r.of(thief)); err == nil || token != "" {
			t.Errorf("%q has the token %q, error %v", thief, token, err)
		}
	}
}
