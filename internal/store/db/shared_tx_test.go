package db_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// gathering queues Writes in order while one holds the turn, so that they share the next
// transaction.
type gathering struct {
	t    *testing.T
	d    *db.DB
	hold chan struct{}
	all  sync.WaitGroup
	mu   sync.Mutex
	errs map[string]error
	in   map[string]string // the last transaction of each Write
}

func gather(t *testing.T) *gathering {
	t.Helper()
	g := &gathering{t: t, d: openRows(t, dbtest.Postgres(t), db.Options{OutageTimeout: clocktest.Timeout}), hold: make(chan struct{}), errs: map[string]error{}, in: map[string]string{}}
	entered := make(chan struct{})
	g.all.Go(func() {
		_ = g.d.Write(t.Context(), func(*db.Tx) error { close(entered); <-g.hold; return nil })
	})
	<-entered
	return g
}

// add queues a Write that inserts its name and then does more.
func (g *gathering) add(ctx context.Context, name string, more func(tx *db.Tx) error) {
	before := db.Waiting(g.d)
	g.all.Go(func() {
		defer func() { _ = recover() }()
		err := g.d.Write(ctx, func(tx *db.Tx) error {
			var number string
			if err := tx.QueryRow(ctx, "SELECT pg_current_xact_id()::TEXT").Scan(&number); err != nil {
				return err
			}
			g.mu.Lock()
			g.in[name] = number
			g.mu.Unlock()
			if _, err := tx.Exec(ctx, "INSERT INTO r (v) VALUES ($1)", name); err != nil {
				return err
			}
			return more(tx)
		})
		g.mu.Lock()
		defer g.mu.Unlock()
		g.errs[name] = err
	})
	clocktest.Await(g.t, func() bool { return db.Waiting(g.d) != before })
}

func (g *gathering) end() map[string]bool {
	close(g.hold)
	g.all.Wait()
	return stored(g.t, g.d)
}

func fine(*db.Tx) error { return nil }

func TestPostgresWritesShareATransaction(t *testing.T) {
	t.Parallel()
	g := gather(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		g.add(t.Context(), name, fine)
	}
	there := g.end()
	numbers := map[string]bool{}
	for name, err := range g.errs {
		numbers[g.in[name]] = true
		if err != nil || !there[name] {
			t.Errorf("%s: %v, stored %v", name, err, there[name])
		}
	}
	if len(numbers) != 1 || len(g.errs) != 6 {
		t.Errorf("6 waiting writes ran in transactions %v, want one", g.in)
	}
}

// When one part fails, the other parts are stored, and it is not.
func TestPostgresPartsAreIndependent(t *testing.T) {
	t.Parallel()
	g := gather(t)
	no, cancelled := errors.New("no"), errors.New("cancelled")
	during, cancel := context.WithCancelCause(t.Context())
	waiting, leave := context.WithCancelCause(t.Context())
	g.add(t.Context(), "one", fine)
	g.add(t.Context(), "refused", func(*db.Tx) error { return no })
	g.add(t.Context(), "two", fine)
	g.add(t.Context(), "twice", func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO r (v) VALUES ('one')")
		return err
	})
	g.add(t.Context(), "ignores its error", func(tx *db.Tx) error {
		_, _ = tx.Exec(t.Context(), "INSERT INTO r (v) VALUES ('one')")
		return nil
	})
	g.add(t.Context(), "panics", func(*db.Tx) error { panic("boom") })
	g.add(during, "cancelled while it runs", func(tx *db.Tx) error {
		cancel(cancelled)
		_, err := tx.Exec(during, "INSERT INTO r (v) VALUES ('never')")
		return err
	})
	g.add(waiting, "cancelled while it waits", fine)
	leave(cancelled)
	clocktest.Await(t, func() bool { return db.Waiting(g.d) != 8 })
	g.add(t.Context(), "three", fine)
	there := g.end()
	if got, want := slices.Sorted(maps.Keys(there)), []string{"one", "three", "two"}; !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	for name, want := range map[string]error{"one": nil, "two": nil, "three": nil, "refused": no, "twice": db.ErrUnique, "cancelled while it runs": cancelled, "cancelled while it waits": cancelled} {
		if got := g.errs[name]; !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if g.errs["ignores its error"] == nil {
		t.Error("a write that could not be committed was acknowledged")
	}
	if _, ok := g.errs["panics"]; ok {
		t.Error("a panic was returned as a result")
	}
	if g.in["cancelled while it waits"] != "" {
		t.Error("a write ran although its caller had cancelled it")
	}
}

// A part that only reads and then fails has nothing to roll back, so the others do not run
// again.
func TestPostgresRefusalSharesToo(t *testing.T) {
	t.Parallel()
	g := gather(t)
	no := errors.New("no")
	g.add(t.Context(), "one", fine)
	refused := make(chan error, 1)
	runs := 0
	g.all.Go(func() {
		refused <- g.d.Write(t.Context(), func(tx *db.Tx) error {
			runs++
			if err := tx.QueryRow(t.Context(), "SELECT v FROM r LIMIT 1").Scan(new(string)); err != nil {
				return err
			}
			return no
		})
	})
	clocktest.Await(t, func() bool { return db.Waiting(g.d) != 1 })
	g.add(t.Context(), "two", fine)
	there := g.end()
	if err := <-refused; !errors.Is(err, no) || runs != 1 {
		t.Errorf("refused with %v after %d runs, want its own error after one", err, runs)
	}
	if g.in["one"] != g.in["two"] || len(there) != 2 {
		t.Errorf("ran in %v, stored %v", g.in, there)
	}
}
