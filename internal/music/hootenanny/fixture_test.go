package hootenanny

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// fixture is a backend with a fake clock and an empty store. Tools that need a store
// are tested in package server.
type fixture struct {
	*Backend
	clock *clock.Virtual
	bus   *event.Bus
	seen  *event.Subscription
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return openFixture(t, dbtest.Fresh(t))
}

func openFixture(t *testing.T, url string) *fixture {
	t.Helper()
	b := &fixture{clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.bus = event.New(event.BusOptions{Clock: b.clock})
	b.seen = b.bus.Subscribe(event.Options{Types: []string{"transport.*", "beat.*", "marker.*", "region.*"}, Buffer: 10_000})
	store, err := db.Open(t.Context(), url, dbtest.Options(url))
	if err != nil {
		t.Fatal(err)
	}
	b.Backend, err = Open(t.Context(), store, Options{Files: noFiles(t, store), Clock: b.clock, Events: b.bus})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close(t.Context())
		b.bus.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// noFiles are no contents and artifacts.
func noFiles(t *testing.T, database *db.DB) *artifact.Files {
	t.Helper()
	files, err := artifact.OpenFiles(t.Context(), database, artifact.FilesOptions{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
