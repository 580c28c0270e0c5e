package oauth_test

import (
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// Logins that were stored before logins had owners are shared.
func TestLoginsWithoutOwner(t *testing.T) {
	t.Parallel()
	store := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	first, err := os.ReadFile("migrations/00001_oauth.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context(), "oauth", fstest.MapFS{"migrations/00001_oauth.sql": {Data: first}}); err != nil {
		t.Fatal(err)
	}
	key := func() (secret.Text, error) { return secret.New("the key of the test, long enough"), nil }
	s := oauth.Server{Name: "test", URL: "https://tools.example/mcp"}
	sealed, err := secret.Box{Key: key}.Seal(map[string]any{"access": "of before", "issuer": "https://as.example"}, "login", s.Name, "https://as.example", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Write(t.Context(), func(tx *db.Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO oauth_challenges (upstream, server, metadata, scopes, error) VALUES ('test', $1, '', 'read', '')`, s.URL); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO oauth_logins (upstream, server, issuer, scopes, expires, updated, version, claimed_until, sealed)
			VALUES ('test', $1, 'https://as.example', 'read', 0, $2, $2, 0, $3)`, s.URL, time.Now().UnixMicro(), sealed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	logins, err := oauth.Open(t.Context(), store, oauth.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if token, err := logins.Token(t.Context(), s); err != nil || token != "of before" {
		t.Errorf("shared: %q %v", token, err)
	}
	s.Owner = "person:ada"
	if token, err := logins.Token(t.Context(), s); err != nil || token != "" {
		t.Errorf("Ada: %q %v", token, err)
	}
}
