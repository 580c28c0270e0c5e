package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

func constraints(t *testing.T, url string) {
	d := openMigrated(t, url)
	if err := addThing(t.Context(), d, "taken", 1); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		statement string
		want      error
		code      fault.Code
	}{
		"unique":      {"INSERT INTO things (name, size) VALUES ('taken', 2)", db.ErrUnique, fault.Conflict},
		"returning":   {"INSERT INTO things (name, size) VALUES ('taken', 2) RETURNING name", db.ErrUnique, fault.Conflict},
		"foreign key": {"INSERT INTO parts (thing, label) VALUES ('missing', 'x')", db.ErrForeignKey, fault.Conflict},
		"check":       {"INSERT INTO things (name, size) VALUES ('negative', -1)", db.ErrConstraint, fault.InvalidParams},
		"not null":    {"INSERT INTO things (name, size) VALUES ('none', NULL)", db.ErrConstraint, fault.InvalidParams},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				if name == "returning" {
					var got string
					return tx.QueryRow(t.Context(), c.statement).Scan(&got)
				}
				_, err := tx.Exec(t.Context(), c.statement)
				return err
			})
			if !errors.Is(err, c.want) || fault.CodeOf(err) != c.code {
				t.Errorf("Write = %v (%s), want %v (%s)", err, fault.CodeOf(err), c.want, c.code)
			}
		})
	}
	if got, want := things(t, d), []string{"taken"}; !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
}

func undoneByError(t *testing.T, url string) {
	d := openMigrated(t, url)
	refused := errors.New("changed my mind")
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		if err := insertThing(t.Context(), tx, "gone", 1); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("Write = %v, want the function's own error", err)
	}
	if got := things(t, d); len(got) != 0 {
		t.Errorf("things %q, want none", got)
	}
}

func undoneByPanic(t *testing.T, url string) {
	d := openMigrated(t, url)
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want boom", got)
			}
		}()
		_ = d.Write(t.Context(), func(tx *db.Tx) error {
			_ = insertThing(t.Context(), tx, "gone", 1)
			panic("boom")
		})
	}()
	if err := addThing(t.Context(), d, "next", 1); err != nil {
		t.Errorf("Write after a panic: %v", err)
	}
	if got, want := things(t, d), []string{"next"}; !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
}

func manyWriters(t *testing.T, url string) {
	const writers, each = 16, 8
	d := openMigrated(t, url)
	if err := addThing(t.Context(), d, "counter", 0); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := increment(t.Context(), d); err != nil {
					t.Errorf("Write: %v", err)
				}
			}
		})
	}
	all.Wait()
	if got := counter(t, d); got != writers*each {
		t.Errorf("counter = %d, want %d", got, writers*each)
	}
}

// increment reads and writes in two statements, so that two concurrent ones would lose an
// update.
func increment(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "SELECT size FROM things WHERE name = 'counter'").Scan(&n); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE things SET size = $1 WHERE name = 'counter'", n+1)
		return err
	})
}

func counter(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT size FROM things WHERE name = 'counter'").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func failingWriters(t *testing.T, url string) {
	d := openMigrated(t, url)
	var all sync.WaitGroup
	var want []string
	for i := range 60 {
		name := fmt.Sprintf("thing %02d", i)
		if i%3 == 0 {
			want = append(want, name)
		}
		all.Go(func() {
			defer func() { _ = recover() }()
			_ = d.Write(t.Context(), func(tx *db.Tx) error {
				if err := insertThing(t.Context(), tx, name, i); err != nil {
					t.Errorf("insert: %v", err)
				}
				switch i % 3 {
				case 1:
					return errors.New("no")
				case 2:
					panic("no")
				}
				return nil
			})
		})
	}
	all.Wait()
	if got := things(t, d); !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
}

func cancelledWrite(t *testing.T, url string) {
	d := openMigrated(t, url)
	why := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := d.Write(ctx, func(tx *db.Tx) error {
		if err := insertThing(ctx, tx, "first", 1); err != nil {
			t.Errorf("insert before the cancel: %v", err)
		}
		cancel(why)
		return insertThing(ctx, tx, "second", 2)
	})
	if !errors.Is(err, why) {
		t.Errorf("Write = %v, want the cause of its context", err)
	}
	if err := addThing(ctx, d, "third", 3); !errors.Is(err, why) {
		t.Errorf("Write with a done context = %v, want its cause", err)
	}
	if got := things(t, d); len(got) != 0 {
		t.Errorf("things %q, want none", got)
	}
}

func cancelledWait(t *testing.T, url string) {
	d := openMigrated(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	slow.Go(func() {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			close(entered)
			<-leave
			return insertThing(t.Context(), tx, "slow", 1)
		})
		if err != nil {
			t.Errorf("slow write: %v", err)
		}
	})
	<-entered
	waiting := make(chan error, 1)
	go func() { waiting <- addThing(ctx, d, "cancelled", 1) }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting write = %v, want cancelled", err)
	}
	close(leave)
	slow.Wait()
	if got, want := things(t, d), []string{"slow"}; !slices.Equal(got, want) {
		t.Errorf("things %q, want %q", got, want)
	}
}
