package server

import (
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/store/db"
)

// TestKeyOfStoredSecretsIsChanged checks that a start with two keys encrypts what is stored with
// the first, so that the next needs no other.
func TestKeyOfStoredSecretsIsChanged(t *testing.T) {
	t.Parallel()
	const former, next = "the former key of this test", "the next key of this test"
	one, _ := startShared(t)
	database := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	startWith := func(t *testing.T, key string) testNode {
		url, srv := start(t, config.Sources{Flags: map[string]string{"database": database}, Env: config.Environment{"LUANETTE_OAUTH_KEY": key}})
		return testNode{t, url, srv}
	}
	value := func(srv *Server) string {
		got, _ := srv.personal.Get(t.Context(), "person:ann", "TOKEN")
		return got.Reveal()
	}
	t.Run("before", func(t *testing.T) {
		n := startWith(t, former)
		n.api(http.StatusOK, "POST", "/upstreams", `{"namespace": "docs", "url": "`+one+`/mcp", "headers": {"X-Mine": "secret"}}`)
		if err := n.srv.personal.Set(t.Context(), "", "person:ann", "TOKEN", "of ann"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		n := startWith(t, next+"\n"+former)
		n.await("docs", "connected")
		box := secret.Box{Key: n.srv.storedKey()}
		clocktest.Await(t, func() bool {
			changed, err := n.srv.resealAll(t.Context(), box)
			return err == nil && changed == 0 // by the start
		})
	})
	t.Run("after", func(t *testing.T) {
		n := startWith(t, next)
		n.await("docs", "connected")
		if got := value(n.srv); got != "of ann" {
			t.Errorf("the value of a person is %q", got)
		}
	})
}

// TestAllSealedColumnsAreKnown finds the columns with encrypted secrets in the database. Those of
// logins in progress end by themselves.
func TestAllSealedColumnsAreKnown(t *testing.T) {
	t.Parallel()
	_, srv := startShared(t)
	known := []string{"oauth_flows", "signin_flows"}
	for _, column := range append(oauth.Sealed(), personal.Sealed(), people.Sealed(), signin.Sealed(), upstreamstore.Sealed()) {
		known = append(known, column.Table)
	}
	tables, err := db.Find(t.Context(), srv.store, db.Column[string], `SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'sealed'`)
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		if !slices.Contains(known, table) {
			t.Errorf("the secrets in %s are not encrypted again when the key is changed", table)
		}
	}
}
