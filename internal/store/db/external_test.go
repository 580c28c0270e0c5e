package db_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// pooled returns a database with a table, and the pool over it.
func pooled(t testing.TB) (*db.DB, *sql.DB) {
	t.Helper()
	d, err := db.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pool.db"), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	library, err := d.External(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool := library.SQL
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE items (name TEXT PRIMARY KEY, body BYTEA); CREATE INDEX items_body ON items (body)"); err != nil {
		t.Fatal(err)
	}
	return d, pool
}

func count(t testing.TB, pool *sql.DB) (n int) {
	t.Helper()
	if err := pool.QueryRowContext(t.Context(), "SELECT count(*) FROM items").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPoolCommitsAndRollsBack(t *testing.T) {
	t.Parallel()
	_, pool := pooled(t)
	for _, keep := range []bool{true, false} {
		tx, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		err = tx.QueryRowContext(t.Context(), "INSERT INTO items VALUES ($1, $2) RETURNING name", map[bool]string{true: "yes", false: "no"}[keep], []byte{0, 255}).Scan(&name)
		if err != nil {
			t.Fatal(err)
		}
		end := tx.Rollback
		if keep {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	var name string
	var body []byte
	var none *string
	if err := pool.QueryRowContext(t.Context(), "SELECT name, body, NULL FROM items").Scan(&name, &body, &none); err != nil || name != "yes" || string(body) != "\x00\xff" || none != nil {
		t.Errorf("stored %q %q (%v), want only what was committed", name, body, err)
	}
}

// Writers through the pool and writers through the database do not conflict.
func TestPoolSharesTurns(t *testing.T) {
	t.Parallel()
	d, pool := pooled(t)
	const each = 40
	var writers sync.WaitGroup
	for i := range each {
		writers.Go(func() {
			tx, err := pool.BeginTx(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = tx.ExecContext(t.Context(), "INSERT INTO items (name) VALUES ('pool ' || $1)", i)
			if err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		})
		writers.Go(func() {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := tx.Exec(t.Context(), "INSERT INTO items (name) VALUES ('ours ' || $1)", i)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got := count(t, pool); got != 2*each {
		t.Errorf("%d rows, want %d", got, 2*each)
	}
}

// A caller of the pool whose context ends releases its turn.
func TestPoolReleasesCancelledTurn(t *testing.T) {
	t.Parallel()
	_, pool := pooled(t)
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO items (name) VALUES ('half')"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := pool.ExecContext(t.Context(), "INSERT INTO items (name) VALUES ('next')"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, pool); got != 1 {
		t.Errorf("%d rows, want 1: the cancelled transaction is rolled back", got)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a cancelled transaction was committed")
	}
}

func TestClaimIsExclusive(t *testing.T) {
	t.Parallel()
	d, _ := pooled(t)
	release, err := d.Claim(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Claim(t.Context(), "jobs"); fault.CodeOf(err) != fault.Conflict || fault.HintOf(err) == "" {
		t.Errorf("a second claim: %v", err)
	}
	other, err := d.Claim(t.Context(), "other")
	if err != nil {
		t.Errorf("another claim: %v", err)
	}
	for _, let := range []func() error{release, other} {
		if err := let(); err != nil {
			t.Error(err)
		}
	}
	if release, err = d.Claim(t.Context(), "jobs"); err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// The locks of a library's transaction end soon after its process is frozen. Other nodes wait
// for them.
func TestExternalTransactionsDoNotStayIdle(t *testing.T) {
	t.Parallel()
	library, err := dbtest.Open(t, dbtest.Postgres(t)).External(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(library.Postgres.Close)
	var timeout string
	if err := library.Postgres.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&timeout); err != nil || timeout != "10s" {
		t.Errorf("an idle transaction of the library ends after %q, %v", timeout, err)
	}
}
