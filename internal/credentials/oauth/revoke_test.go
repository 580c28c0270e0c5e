package oauth_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/store/db"
)

// revoke makes the attempts that are due.
func (r *rig) revoke(t *testing.T) {
	t.Helper()
	if err := r.logins.Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A login that ends is deleted at once, and its issuer is told.
func TestEnd(t *testing.T) {
	t.Parallel()
	r := setup(t)
	shared, bob := r.login(t), r.loginOf(t, "person:bob")
	r.loginOf(t, "person:ada")
	if was, err := r.logins.End(t.Context(), "test", "person:ada"); err != nil || !was || r.tokenOf(t, "person:ada") != "" {
		t.Errorf("%v %v", was, err)
	}
	if was, err := r.logins.End(t.Context(), "test", "person:ada"); err != nil || was {
		t.Errorf("again: %v %v", was, err)
	}
	r.revoke(t)
	r.revoke(t)
	if r.Revoked() != 1 || r.token(t) != shared || r.tokenOf(t, "person:bob") != bob {
		t.Errorf("%d revoked", r.Revoked())
	}
	if was, err := r.logins.Logout(t.Context(), "test"); err != nil || !was {
		t.Errorf("the shared one: %v %v", was, err)
	}
	r.revoke(t)
	if r.Revoked() != 2 || r.tokenOf(t, "person:bob") != bob {
		t.Errorf("%d revoked", r.Revoked())
	}
	r.blameless(t)
}

// Somebody who leaves loses the logins of all organisations, and nobody else does.
func TestEndOf(t *testing.T) {
	t.Parallel()
	r := setup(t)
	other := r.loginOf(t, "person:adam")
	r.loginOf(t, "person:ada")
	r.loginOf(t, "person:ada/acme")
	if err := r.store.Write(t.Context(), func(tx *db.Tx) error { return oauth.EndOf(t.Context(), tx, "person:ada") }); err != nil {
		t.Fatal(err)
	}
	r.logins.Reload()
	if r.tokenOf(t, "person:ada") != "" || r.tokenOf(t, "person:ada/acme") != "" || r.tokenOf(t, "person:adam") != other {
		t.Error("not only the logins of Ada have ended")
	}
	r.revoke(t)
	if r.Revoked() != 2 {
		t.Errorf("%d revoked", r.Revoked())
	}
	r.blameless(t)
}

// An issuer that does not answer is told later, and not for ever.
func TestRevocationIsRepeated(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var requests atomic.Int32
	failing := counted(&requests, func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { w.WriteHeader(503) })
	r.Change(func() { r.AroundRevoke = failing })
	end := func() {
		r.loginOf(t, "person:ada")
		if was, err := r.logins.End(t.Context(), "test", "person:ada"); err != nil || !was {
			t.Fatalf("%v %v", was, err)
		}
	}
	end()
	r.revoke(t)
	r.revoke(t)
	if requests.Load() != 1 {
		t.Errorf("%d requests at once", requests.Load())
	}
	r.Change(func() { r.AroundRevoke = nil })
	r.clock.Advance(time.Minute)
	r.revoke(t)
	if r.Revoked() != 1 {
		t.Errorf("%d revoked", r.Revoked())
	}
	r.Change(func() { r.AroundRevoke = failing })
	end()
	for range 24 * 6 {
		r.revoke(t)
		r.clock.Advance(10 * time.Minute)
	}
	if requests.Load() != 1+8 {
		t.Errorf("%d requests in a day", requests.Load())
	}
	r.blameless(t)
}
