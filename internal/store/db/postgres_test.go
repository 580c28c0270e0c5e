package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

var rows = fstest.MapFS{"migrations/00001_rows.sql": {Data: []byte("-- +goose Up\nCREATE TABLE r (v TEXT PRIMARY KEY);")}}

// openRows opens a database with the table r.
func openRows(t *testing.T, url string, o db.Options) *db.DB {
	t.Helper()
	d := dbtest.OpenWith(t, url, o)
	if err := d.Migrate(t.Context(), "rows", rows); err != nil {
		t.Fatal(err)
	}
	return d
}

func insert(ctx context.Context, d *db.DB, v string) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO r (v) VALUES ($1)", v)
		return err
	})
}

func stored(t *testing.T, d *db.DB) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		all, err := db.All(t.Context(), tx, func(row db.Scanner) (v string, err error) { return v, row.Scan(&v) }, "SELECT v FROM r")
		for _, v := range all {
			found[v] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// While many write, the server is restarted, orderly and by a crash. A write that
// returned nil is stored, one that failed is not, and none is stored twice (its key
// prevents that); a few may return ErrCommitUnknown.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := openRows(t, server.URL, db.Options{OutageTimeout: clocktest.Timeout})
	const writers = 8
	var done [writers]map[string]error
	var written atomic.Int64
	progress := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for w := range writers {
		done[w] = map[string]error{}
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				v := fmt.Sprint(w, "-", i)
				done[w][v] = insert(context.WithoutCancel(ctx), d, v)
				written.Add(1)
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	for _, how := range []string{"fast", "immediate", "fast"} {
		for range 50 {
			<-progress
		}
		server.Stop(t, how)
		server.Start(t)
	}
	stop()
	all.Wait()
	there := stored(t, d)
	unknown := 0
	for _, results := range done {
		for v, err := range results {
			switch {
			case err == nil && !there[v]:
				t.Errorf("%s was acknowledged and is lost", v)
			case errors.Is(err, db.ErrCommitUnknown):
				unknown++
			case err != nil:
				t.Errorf("%s: %v", v, err)
			}
		}
	}
	if unknown > writers {
		t.Errorf("%d of %d writes do not know their outcome", unknown, written.Load())
	}
	t.Logf("%d writes, %d of unknown outcome", written.Load(), unknown)
}

func TestUnreachablePostgres(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := openRows(t, server.URL, db.Options{OutageTimeout: clocktest.Timeout})
	server.Stop(t, "fast")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := insert(ctx, d, "cancelled"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled write = %v", err)
	}
	_, err := db.Open(t.Context(), server.URL, db.Options{})
	if fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "Postgres runs at") {
		t.Errorf("Open = %v, hint %q", err, fault.HintOf(err))
	}
	waiting := make(chan error, 2)
	go func() { waiting <- insert(t.Context(), d, "waiting") }()
	go func() { waiting <- d.Read(t.Context(), func(tx *db.Tx) error { return one(t.Context(), tx) }) }()
	server.Start(t)
	for range 2 {
		if err := <-waiting; err != nil {
			t.Errorf("while it waited for the server: %v", err)
		}
	}
}

func one(ctx context.Context, tx *db.Tx) error {
	var n int
	return tx.QueryRow(ctx, "SELECT 1").Scan(&n)
}

// TestPasswordIsReadAgain changes the password at the server: new connections log in with the
// one that the address has by then, and until then errors say what the server says.
func TestPasswordIsReadAgain(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	var address atomic.Value
	address.Store(server.RequirePassword(t, "first"))
	now := func() (string, error) { return address.Load().(string), nil }
	d := openRows(t, address.Load().(string), db.Options{OutageTimeout: clocktest.Timeout, Address: now})
	impatient := dbtest.OpenWith(t, address.Load().(string), db.Options{OutageTimeout: time.Nanosecond, Address: now})
	next := server.RequirePassword(t, "second")
	var err error
	clocktest.Await(t, func() bool { // the connections of before are lost first
		err = insert(t.Context(), impatient, "refused")
		return err != nil && strings.Contains(err.Error(), "the database refuses the login: 28P01 password authentication failed:")
	}, func() string { return fmt.Sprint(err) })
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.HintOf(err), "${file:") {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
	if !db.IsOutage(err) {
		t.Error("not taken for an outage")
	}
	waiting := make(chan error)
	go func() { waiting <- insert(t.Context(), d, "waiting") }()
	clocktest.Await(t, func() bool { return db.Waiting(d) > 0 })
	address.Store(next)
	if err := <-waiting; err != nil {
		t.Errorf("with the new password: %v", err)
	}
}

// TestLimitOutages lets those who wait for an unreachable server for ever wait no longer.
func TestLimitOutages(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := openRows(t, server.URL, db.Options{OutageTimeout: clocktest.Timeout})
	server.Stop(t, "fast")
	promised, _ := db.WaitForDatabase(t.Context())
	waiting := make(chan error, 2)
	go func() { waiting <- insert(promised, d, "waiting") }()
	go func() { waiting <- d.Read(promised, func(tx *db.Tx) error { return one(t.Context(), tx) }) }()
	clocktest.Await(t, func() bool { return db.Waiting(d) > 0 })
	d.LimitOutages(0)
	for range 2 {
		if err := <-waiting; fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("waited until %v", err)
		}
	}
}

// With WaitForDatabase callers wait longer than others, and know that they did.
func TestWaitForDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := openRows(t, server.URL, db.Options{OutageTimeout: time.Nanosecond})
	waits, outages := db.WaitForDatabase(t.Context())
	if err := insert(waits, d, "before"); err != nil || outages.Any() {
		t.Errorf("the server runs: %v, outages met %t", err, outages.Any())
	}
	server.Stop(t, "immediate")
	for what, err := range map[string]error{
		"write": insert(t.Context(), d, "not waiting"),
		"read":  d.Read(t.Context(), func(tx *db.Tx) error { return one(t.Context(), tx) }),
	} {
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s without WaitForDatabase = %v", what, err)
		}
	}
	waiting := make(chan error, 2)
	go func() { waiting <- insert(waits, d, "waiting") }()
	go func() { waiting <- d.Read(waits, func(tx *db.Tx) error { return one(waits, tx) }) }()
	clocktest.Await(t, outages.Any)
	server.Start(t)
	for range 2 {
		if err := <-waiting; err != nil {
			t.Errorf("with WaitForDatabase: %v", err)
		}
	}
	if got := stored(t, d); len(got) != 2 || got["not waiting"] {
		t.Errorf("stored %v", got)
	}
	ended, cancel := context.WithCancel(waits)
	cancel()
	if err := insert(ended, d, "cancelled"); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitForDatabase ends with its context: %v", err)
	}
}

// After an outage, a listener receives Missed and then the notifications of all nodes.
func TestPostgresListenersReconnect(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	options := db.Options{OutageTimeout: clocktest.Timeout}
	here, there := openRows(t, server.URL, options), openRows(t, server.URL, options)
	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan db.Notification, 10)
	var all sync.WaitGroup
	all.Go(func() { _ = here.Listen(ctx, "x", func(n db.Notification) { received <- n }) })
	defer all.Wait()
	defer cancel()
	expect := func(want db.Notification) {
		t.Helper()
		if got := <-received; got != want {
			t.Errorf("received %+v, want %+v", got, want)
		}
	}
	expect(db.Notification{Missed: true})
	if err := there.Notify(ctx, "x", "before"); err != nil {
		t.Fatal(err)
	}
	expect(db.Notification{Payload: "before"})
	server.Stop(t, "fast")
	server.Start(t)
	expect(db.Notification{Missed: true})
	if err := there.Notify(ctx, "x", "after"); err != nil {
		t.Fatal(err)
	}
	expect(db.Notification{Payload: "after"})
}

func TestPostgresRefusesOddText(t *testing.T) {
	t.Parallel()
	d := openRows(t, dbtest.Postgres(t), db.Options{})
	for _, v := range []string{"zero\x00", "broken \xff"} {
		if err := insert(t.Context(), d, v); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("insert %q = %v, want invalid_params with a hint", v, err)
		}
	}
}

// With Options.InjectFaults, functions that rely on running once fail.
func TestInjectFaults(t *testing.T) {
	t.Parallel()
	d := openRows(t, dbtest.SQLite(t), db.Options{InjectFaults: true})
	var runs []string
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		run := "began"
		for _, v := range []string{"one", "two"} {
			if _, err := tx.Exec(t.Context(), "INSERT INTO r (v) VALUES ($1)", v); err != nil {
				runs = append(runs, run)
				return err
			}
			run = v
		}
		runs = append(runs, run)
		return nil
	})
	if want := []string{"began", "one", "two", "two"}; err != nil || !slices.Equal(runs, want) || len(stored(t, d)) != 2 {
		t.Errorf("the runs ended at %q, want %q; %v, rows %v", runs, want, err, stored(t, d))
	}
}

// Copies of a template have its tables, and rows of their own.
func TestTemplate(t *testing.T) {
	t.Parallel()
	template := dbtest.NewTemplate(dbtest.AllTables(
		map[string]fs.FS{"rows": rows},
		func(ctx context.Context, d *db.DB) error { return insert(ctx, d, "of the template") },
	))
	for _, v := range []string{"one", "another"} {
		template.Each(t, func(t *testing.T, address string) {
			d := dbtest.OpenWith(t, address, db.Options{})
			if err := insert(t.Context(), d, v); err != nil {
				t.Fatal(err)
			}
			if got := stored(t, d); len(got) != 2 || !got["of the template"] || !got[v] {
				t.Errorf("the copy has %v", got)
			}
		})
	}
}

// A pool with too few connections, which could deadlock, is refused.
func TestTooFewConnections(t *testing.T) {
	t.Parallel()
	if d, err := db.Open(t.Context(), "postgres:///x?host=/nowhere&pool_max_conns=3", db.Options{}); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "pool_max_conns=4") {
		t.Errorf("Open = %v, %v", d, err)
	}
}
