package personal_test

import (
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnlyVerifiedAddresses checks that upstreams are never told an address that a person
// may have made up: they take it for a proof of who calls.
func TestOnlyVerifiedAddresses(t *testing.T) {
	t.Parallel()
	store, err := people.Open(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), people.Options{
		Key: func() (secret.Text, error) { return secret.New("a key for this test only"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	owners := personal.Owners{People: store, Check: store.Check}
	for subject, verified := range map[string]bool{"ann": true, "bob": false} {
		p, err := store.SignIn(t.Context(), people.Arrival{
			Identity: people.Identity{Issuer: "https://login.example", Subject: subject}, Name: subject,
			Email: "head@corp.example", Verified: verified, Roles: map[string][]string{"": {"user"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := owners.Person(t.Context(), principal.PersonPrefix+p.ID)
		if err != nil || got.Name != subject || (got.Email == "head@corp.example") != verified {
			t.Errorf("%s: %+v, %v", subject, got, err)
		}
	}
}
