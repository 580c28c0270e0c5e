package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

func oneMoment(t *testing.T, url string) {
	d := openMigrated(t, url)
	if err := addThing(t.Context(), d, "a", 1); err != nil {
		t.Fatal(err)
	}
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		before, err := thingNames(t.Context(), tx)
		if err != nil {
			return err
		}
		err = d.Write(t.Context(), func(w *db.Tx) error {
			if err := insertThing(t.Context(), w, "b", 1); err != nil {
				return err
			}
			if got := things(t, d); !slices.Equal(got, []string{"a"}) {
				t.Errorf("a read sees %q while the write is not committed", got)
			}
			return nil
		})
		if err != nil {
			return err
		}
		after, err := thingNames(t.Context(), tx)
		if !slices.Equal(before, after) {
			t.Errorf("within one read: %q, then %q", before, after)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := things(t, d), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("after the write: %q, want %q", got, want)
	}
}

func readOnly(t *testing.T, url string) {
	d := openMigrated(t, url)
	err := d.Read(t.Context(), func(tx *db.Tx) error { return insertThing(t.Context(), tx, "smuggled", 1) })
	if err == nil {
		t.Error("a read wrote without error")
	}
	if got := things(t, d); len(got) != 0 {
		t.Errorf("things %q, want none", got)
	}
}

func cancelledRead(t *testing.T, url string) {
	d := openMigrated(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := d.Read(ctx, func(tx *db.Tx) error {
		var n int
		return tx.QueryRow(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n").Scan(&n)
	})
	if !errors.Is(err, context.DeadlineExceeded) || fault.CodeOf(err) != fault.Timeout {
		t.Errorf("Read = %v (%s), want timeout", err, fault.CodeOf(err))
	}
	if got := things(t, d); len(got) != 0 { // the database still works
		t.Errorf("things %q, want none", got)
	}
}

func bigBlob(t *testing.T, url string) {
	d := openMigrated(t, url)
	body := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body)
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO things (name, size, body) VALUES ('big', $1, $2)", len(body), body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	err = d.Read(t.Context(), func(tx *db.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT body FROM things WHERE name = $1", "big").Scan(&got)
	})
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("read %d bytes back (%v), want the %d written", len(got), err, len(body))
	}
}

func reopened(t *testing.T, url string) {
	first, err := db.Open(t.Context(), url, db.Options{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Migrate(t.Context(), "dbtest", schema.fs()); err != nil {
		t.Fatal(err)
	}
	if err := addThing(t.Context(), first, "kept", 1); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := openMigrated(t, url)
	if got, want := things(t, second), []string{"kept"}; !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
	if err := second.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	err = second.Read(t.Context(), func(tx *db.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT size FROM things WHERE name = 'absent'").Scan(new(int))
	})
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row = %v, want sql.ErrNoRows", err)
	}
}

func closed(t *testing.T, url string) {
	d := openMigrated(t, url)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	nothing := func(*db.Tx) error { t.Error("ran on a closed database"); return nil }
	for doing, err := range map[string]error{
		"Write":   d.Write(t.Context(), nothing),
		"Read":    d.Read(t.Context(), nothing),
		"Migrate": d.Migrate(t.Context(), "dbtest", schema.fs()),
	} {
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s = %v, want unavailable", doing, err)
		}
	}
}

// bytewise tests that text is ordered and compared by its bytes, whatever the locale.
func bytewise(t *testing.T, url string) {
	d := openMigrated(t, url)
	want := []string{"B", "Z", "_", "a", "a-b", "ab", "é"}
	for _, name := range want {
		if err := addThing(t.Context(), d, name, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := things(t, d); !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
}
