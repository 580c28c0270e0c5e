package authserver

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestAttemptsOfAllNodes checks that nodes count together, each address by itself, and that
// the next period begins with none.
func TestAttemptsOfAllNodes(t *testing.T) {
	t.Parallel()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			var nodes []*attempts
			for range 3 {
				store := dbtest.OpenWith(t, database, db.Options{})
				if err := store.Migrate(t.Context(), "authserver", Migrations); err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, &attempts{db: store})
			}
			few := limit{"a kind", 7, time.Minute}
			now := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
			allowed := func(who string, now time.Time) (n int32) {
				t.Helper()
				var good atomic.Int32
				var all sync.WaitGroup
				for _, node := range nodes {
					all.Go(func() {
						for range 5 {
							tooMany, err := node.add(t.Context(), few, who, now)
							if err != nil {
								t.Error(err)
							}
							if !tooMany {
								good.Add(1)
							}
						}
					})
				}
				all.Wait()
				return good.Load()
			}
			for i, tt := range []struct {
				who string
				at  time.Time
			}{{"one", now}, {"another", now}, {"one", now.Add(time.Minute)}} {
				if n := allowed(tt.who, tt.at); n != 7 {
					t.Errorf("%d: %d attempts of %s are allowed", i, n, tt.who)
				}
			}
			if n := allowed("one", now.Add(time.Minute)); n != 0 {
				t.Errorf("%d more attempts are allowed", n)
			}
			for _, node := range nodes {
				for who, want := range map[string]bool{"one": true, "nobody": false} {
					if got, err := node.exhausted(t.Context(), few, who, now.Add(time.Minute)); err != nil || got != want {
						t.Errorf("%s: %v, %v", who, got, err)
					}
				}
			}
			var rows int
			err := nodes[0].db.QueryRow(t.Context(), "SELECT count(*) FROM as_attempts").Scan(&rows)
			if err != nil || rows != 1 { // those of the former period are deleted
				t.Errorf("%d rows, %v", rows, err)
			}
		})
	}
}

// TestSource checks that an IPv6 client, which has all addresses of its network, is one.
func TestSource(t *testing.T) {
	t.Parallel()
	if netguard.Source("2001:db8::1") != netguard.Source("2001:db8::2") || netguard.Source("192.0.2.1") == netguard.Source("192.0.2.2") {
		t.Error("addresses of one network are counted apart, or those of two together")
	}
}
