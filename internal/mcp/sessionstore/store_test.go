package sessionstore_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/mcp/hub"

	"github.com/luanette/luanette/internal/mcp/sessionstore"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		store, err := sessionstore.Open(t.Context(), d, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		v := hub.SessionState{Namespace: "fs", Owner: "ann", Version: "2025-11-25", Caps: []byte(`{"roots":{}}`), Level: "info", Menu: "full"}
		if err := store.Save(t.Context(), "secret", v); err != nil {
			t.Fatal(err)
		}
		v.Level = "debug"
		if err := store.Save(t.Context(), "secret", v); err != nil {
			t.Fatal(err)
		}
		got, ok, err := store.Find(t.Context(), "secret")
		if err != nil || !ok || got.Owner != "ann" || got.Level != "debug" || string(got.Caps) != `{"roots":{}}` || got.Namespace != "fs" || got.Menu != "full" {
			t.Errorf("found %+v %t (%v)", got, ok, err)
		}
		if _, ok, err := store.Find(t.Context(), "other"); ok || err != nil {
			t.Errorf("found a session with another id: %v", err)
		}
		if err := store.Delete(t.Context(), "secret"); err != nil {
			t.Error(err)
		}
		if _, ok, err := store.Find(t.Context(), "secret"); ok || err != nil {
			t.Errorf("found a deleted session: %v", err)
		}
		brief, err := sessionstore.Open(t.Context(), d, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		if err := brief.Save(t.Context(), "short", v); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := brief.Find(t.Context(), "short"); ok || err != nil {
			t.Errorf("found an expired session: %v", err)
		}
	})
}
