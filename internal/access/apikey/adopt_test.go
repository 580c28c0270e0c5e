package apikey_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/personal"
)

// before returns a migration as it was in the first version of the tables.
func before(t *testing.T) fs.FS {
	t.Helper()
	text, err := os.ReadFile("migrations/00001_keys.sql")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"migrations/00001_keys.sql": {Data: text}}
}

func execAll(t *testing.T, store *db.DB, statements ...string) {
	t.Helper()
	err := store.Write(t.Context(), func(tx *db.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func columnOf(t *testing.T, store *db.DB, query string) (all string) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *db.Tx) error {
		list, err := db.All(t.Context(), tx, db.Column[string], query)
		all = strings.Join(list, ", ")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAdopt opens a database in which keys of people owned what they made: it is the people's
// afterwards, and a key of the same name does not get it.
func TestAdopt(t *testing.T) {
	t.Parallel()
	store := dbtest.Open(t, dbtest.Fresh(t))
	if err := store.Migrate(t.Context(), "keyring", before(t)); err != nil {
		t.Fatal(err)
	}
	for name, rights := range map[string]string{"laptop": `{"scopes":["mcp"],"org":"acme","user":"p1","person":"p1"}`, "web": `{"scopes":["mcp"],"user":"p1"}`} {
		hash := apikey.HashOf(name)
		err := store.Exec(t.Context(), "INSERT INTO access_keys (name, hash, rights, created, expires) VALUES ($1, $2, $3, 1, 0)", name, hash[:], rights)
		if err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, store,
		`CREATE TABLE made (owner TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, name))`,
		`INSERT INTO made VALUES ('key:laptop', 'a'), ('key:web', 'a')`,
		`CREATE TABLE named (owner TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, name))`,
		`INSERT INTO named VALUES ('key:laptop', 'a'), ('person:p1/acme', 'a')`,
	)
	keys, err := apikey.Open(t.Context(), store, apikey.Options{People: everybody{}})
	if err != nil {
		t.Fatal(err)
	}
	tables := []personal.Table{{Name: "made", Where: "OWNER(owner)"}, {Name: "named", Where: "OWNER(owner)"}, {Name: "missing", Where: "OWNER(owner)"}, {Name: "made", Where: "name IN (SELECT name FROM named WHERE OWNER(owner))"}}
	for _, again := range []bool{false, true} { // the second time there is nothing to do, although a service has such a key
		if err := keys.Adopt(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		if got := columnOf(t, store, "SELECT owner FROM made ORDER BY owner"); got != "key:web, person:p1/acme" {
			t.Errorf("owners: %s", got)
		}
		if got := columnOf(t, store, "SELECT owner FROM named ORDER BY owner"); got != "person:p1/acme, person:p1/acme/key:laptop" {
			t.Errorf("where the person has the same name: %s", got)
		}
		if got := columnOf(t, store, "SELECT owner FROM access_keys WHERE owner <> ''"); got != "person:p1/acme" {
			t.Errorf("owners of keys: %s", got)
		}
		_, _, err := keys.Create(t.Context(), apikey.Key{Name: "laptop", Rights: apikey.Rights{Scopes: []principal.Scope{principal.MCP}}})
		if (err != nil) != again || again && fault.CodeOf(err) != fault.Conflict {
			t.Error(err)
		}
	}
	var job principal.Principal
	if err := json.Unmarshal([]byte(`{"id":"key:laptop","name":"laptop","org":"acme","user":"p1","account":"person:p1/acme","limits":{"rate":3}}`), &job); err != nil {
		t.Fatal(err)
	}
	who, err := keys.Current(t.Context(), job)
	if err != nil || who.ID != "person:p1/acme" || who.Client != "key laptop" || who.Name != "p1" {
		t.Errorf("a stored job acts as %+v, %v", who, err)
	}
}

// everybody may do everything.
type everybody struct{}

func (everybody) Restrict(key principal.Principal, person string) (principal.Principal, error) {
	return principal.Principal{ID: principal.PersonID(person, key.Org), Name: person, Org: key.Org, Scopes: key.Scopes}.ByKey(key.Name), nil
}

func (everybody) Current(_ context.Context, was principal.Principal) (principal.Principal, error) {
	return was, nil
}

func (everybody) Check(string) error { return nil }
