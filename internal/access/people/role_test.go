package people_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestSetOfRoles checks which tools people with roles that name sets have, and with keys of
// theirs that name one too.
func TestSetOfRoles(t *testing.T) {
	t.Parallel()
	mcp := []principal.Scope{principal.MCP}
	store, err := people.Open(t.Context(), dbtest.Open(t, dbtest.Fresh(t)), people.Options{
		Key: func() (secret.Text, error) { return secret.New("a key that is long enough"), nil },
		Roles: people.Standard().With(people.Roles{
			"research": {Scopes: mcp, Set: "research"}, "notes": {Scopes: mcp, Set: "research", Tools: []string{"notes.*"}},
			"mail": {Scopes: mcp, Set: "mail"}, "support": {Scopes: mcp, Tools: []string{"tickets.*"}},
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ roles, keySet, want string }{
		{"research", "", "research []"}, {"notes", "", "research [notes.*]"},
		{"research viewer", "", "research []"},             // who only reads has no more tools
		{"research user", "", " []"},                       // everything
		{"research support", "", " [tickets.*]"},           // not all tools outside of the set
		{"research mail", "", "research []"},               // nobody is within two
		{"support user", "", " []"}, {"viewer", "", " []"}, // as without sets
		{"research", "research", "research []"}, {"user", "mail", "mail []"}, {"research", "mail", "refused"},
	} {
		p, err := store.SignIn(t.Context(), people.Arrival{
			Identity: people.Identity{Issuer: "https://login.example", Subject: c.roles + c.keySet}, Name: "Ada",
			Roles: map[string][]string{"": strings.Fields(c.roles)}, Source: "corp",
		})
		if err != nil {
			t.Fatal(err)
		}
		who, err := store.Principal(t.Context(), p.ID, "")
		if c.keySet != "" {
			who, err = store.Restrict(principal.Principal{Name: "laptop", Scopes: mcp, Set: c.keySet}, p.ID)
		}
		got := who.Set + " [" + strings.Join(who.Tools, " ") + "]"
		if fault.CodeOf(err) == fault.Denied {
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s, key for %q: %s, %v; want %s", c.roles, c.keySet, got, err, c.want)
		}
	}
}
