package hootenanny

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/cas"
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
	b.Backend, err = Open(t.Context(), store, Options{Store: emptyStore{}, Clock: b.clock, Events: b.bus})
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

// emptyStore is empty and read-only.
type emptyStore struct{}

func (emptyStore) none() error { return fault.New(fault.NotFound, "the store is empty") }

func (s emptyStore) PutContent(context.Context, io.Reader, string) (Content, error) {
	return Content{}, s.none()
}
func (s emptyStore) Find(context.Context, string) (Content, error)        { return Content{}, s.none() }
func (s emptyStore) Open(context.Context, cas.Ref) (io.ReadCloser, error) { return nil, s.none() }
func (s emptyStore) Stats(context.Context) (Stats, error)                 { return Stats{}, nil }
func (s emptyStore) Get(context.Context, string) (Artifact, error)        { return Artifact{}, s.none() }
func (s emptyStore) Search(context.Context, Search) (Page, error)         { return Page{}, nil }

func (s emptyStore) Put(context.Context, io.Reader, Details) (Artifact, error) {
	return Artifact{}, s.none()
}

func (s emptyStore) Annotate(context.Context, cas.Ref, Annotation) (Artifact, error) {
	return Artifact{}, s.none()
}
