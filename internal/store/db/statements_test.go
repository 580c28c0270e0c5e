package db

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

// memoryOf calls look with the writer's connection.
func memoryOf(t *testing.T, d *DB, look func(*cachingConn)) {
	t.Helper()
	conn, err := d.writer.(*groupWriter).db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Raw(func(c any) error { look(c.(*cachingConn)); return nil }); err != nil {
		t.Fatal(err)
	}
}

func openCached(t *testing.T) *DB {
	t.Helper()
	d, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	write(t, d, "CREATE TABLE r (v BIGINT)")
	return d
}

func write(t *testing.T, d *DB, query string, args ...any) {
	t.Helper()
	if err := d.Write(t.Context(), func(tx *Tx) error { _, err := tx.Exec(t.Context(), query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

// A statement is prepared once, and also works right after tables were changed.
func TestStatementsAreCached(t *testing.T) {
	t.Parallel()
	d := openCached(t)
	const insert = "INSERT INTO r (v) VALUES ($1)"
	write(t, d, insert, 1)
	var first *cachedStmt
	memoryOf(t, d, func(m *cachingConn) { first = m.statements[insert] })
	write(t, d, "ALTER TABLE r ADD COLUMN w TEXT NOT NULL DEFAULT 'x'")
	write(t, d, insert, 2)
	memoryOf(t, d, func(m *cachingConn) {
		if first == nil || m.statements[insert] != first {
			t.Error("the statement was compiled anew")
		}
	})
	var n int
	var w string
	err := d.Read(t.Context(), func(tx *Tx) error {
		return tx.QueryRow(t.Context(), "SELECT count(*), max(w) FROM r").Scan(&n, &w)
	})
	if err != nil || n != 2 || w != "x" {
		t.Errorf("%d rows, %q (%v)", n, w, err)
	}
}

// A query that runs while its own rows are read gets rows of its own.
func TestAStatementWithinItself(t *testing.T) {
	t.Parallel()
	d := openCached(t)
	for i := range 3 {
		write(t, d, "INSERT INTO r (v) VALUES ($1)", i)
	}
	const query = "SELECT v FROM r ORDER BY v"
	var got []string
	err := d.Read(t.Context(), func(tx *Tx) error {
		number := Column[int]
		_, err := All(t.Context(), tx, func(row Scanner) (n int, err error) {
			if n, err = number(row); err != nil {
				return n, err
			}
			inner, err := All(t.Context(), tx, number, query)
			got = append(got, fmt.Sprint(n, inner))
			return n, err
		}, query)
		return err
	})
	if want := "[0 [0 1 2] 1 [0 1 2] 2 [0 1 2]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("read %v (%v), want %s", got, err, want)
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	d := openCached(t)
	const often = "SELECT 1 WHERE 1 = $1"
	for i := range 2 * maxStatements {
		err := d.Write(t.Context(), func(tx *Tx) error {
			var n int
			if err := tx.QueryRow(t.Context(), often, 1).Scan(&n); err != nil {
				return err
			}
			err := tx.QueryRow(t.Context(), fmt.Sprintf("SELECT %d WHERE 1 = 2", i)).Scan(&n)
			if err == sql.ErrNoRows { //nolint:errorlint // as Scan gives it
				return nil
			}
			return fmt.Errorf("found %d (%w)", n, err)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	memoryOf(t, d, func(m *cachingConn) {
		if len(m.statements) > maxStatements || m.statements[often] == nil {
			t.Errorf("%d statements are kept, the one in use: %t", len(m.statements), m.statements[often] != nil)
		}
	})
}

func TestPositional(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`INSERT INTO t VALUES ($1, $2)`:                            `INSERT INTO t VALUES (?, ?)`,
		`SELECT '$1', a FROM t WHERE b = $1 AND c = '' AND d = $2`: `SELECT '$1', a FROM t WHERE b = ? AND c = '' AND d = ?`,
		`SELECT $2, $1`:              `SELECT $2, $1`,
		`SELECT $1, $1`:              `SELECT $1, $1`,
		`SELECT $10`:                 `SELECT $10`,
		`SELECT 1`:                   `SELECT 1`,
		`SELECT 'it''s $1' , $1`:     `SELECT 'it''s $1' , ?`,
		`UPDATE t SET a = $1 || 'x'`: `UPDATE t SET a = ? || 'x'`,
	} {
		if got := positional(query); got != want {
			t.Errorf("%s became %s", query, got)
		}
	}
}
