package db_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// runSuite tests the behaviour that every kind of database must have. Each call of fresh
// returns the URL of an empty one, which is removed when its test ends. runSuite must be
// called from a test function of its own: the crash test runs that function again in a
// child process.
func runSuite(t *testing.T, fresh func(t testing.TB) string) {
	if beChild() {
		return
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

var tests = map[string]func(t *testing.T, url string){
	"migrations run once and in order":                      migrationsInOrder,
	"migration sets are independent":                        migrationSets,
	"a failing migration leaves nothing":                    migrationFails,
	"a newer database is refused":                           migrationNewer,
	"two programs may migrate at once":                      migrationRace,
	"constraints have their own errors":                     constraints,
	"an error rolls its write back":                         undoneByError,
	"a panic rolls its write back and continues":            undoneByPanic,
	"writers do not lose each other's work":                 manyWriters,
	"a failing writer does not affect others":               failingWriters,
	"a read sees one snapshot":                              oneMoment,
	"text is compared byte by byte":                         bytewise,
	"a read cannot write":                                   readOnly,
	"a cancelled write does not happen":                     cancelledWrite,
	"a cancelled wait leaves the queue":                     cancelledWait,
	"a cancelled read stops":                                cancelledRead,
	"a blob is read as it was written":                      bigBlob,
	"data is there after reopening":                         reopened,
	"a closed database returns an error":                    closed,
	"acknowledged writes survive a crash":                   crash,
	"two programs increment one counter":                    twoNodes,
	"concurrent decisions of two programs are serializable": skew,
	"a claim has one holder":                                claims,
	"notifications reach listeners":                         news,
	"a slow listener is notified that it missed some":       slowListener,
}

// open opens url without InjectFaults and closes it when the test ends.
func open(t *testing.T, url string) *db.DB {
	t.Helper()
	return dbtest.OpenWith(t, url, db.Options{OutageTimeout: clocktest.Timeout})
}

// schema is the migration of most tests.
var schema = files{
	"00001_things": `CREATE TABLE things (name TEXT PRIMARY KEY, size BIGINT NOT NULL CHECK (size >= 0), body BYTEA);`,
	"00002_parts":  `CREATE TABLE parts (thing TEXT NOT NULL REFERENCES things (name), label TEXT NOT NULL);`,
}

// files are migrations by name, without goose's annotations.
type files map[string]string

func (f files) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for name, up := range f {
		m["migrations/"+name+".sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + up)}
	}
	return m
}

// openMigrated opens url and creates the tables of schema.
func openMigrated(t *testing.T, url string) *db.DB {
	t.Helper()
	d := open(t, url)
	if err := d.Migrate(t.Context(), "dbtest", schema.fs()); err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	return d
}

// addThing writes one row.
func addThing(ctx context.Context, d *db.DB, name string, size int) error {
	return d.Write(ctx, func(tx *db.Tx) error { return insertThing(ctx, tx, name, size) })
}

func insertThing(ctx context.Context, tx *db.Tx, name string, size int) error {
	_, err := tx.Exec(ctx, "INSERT INTO things (name, size) VALUES ($1, $2)", name, size)
	return err
}

// things reads the names in order.
func things(t *testing.T, d *db.DB) (names []string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		names, err = thingNames(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return names
}

func thingNames(ctx context.Context, tx *db.Tx) ([]string, error) {
	return db.All(ctx, tx, func(row db.Scanner) (name string, err error) {
		return name, row.Scan(&name)
	}, "SELECT name FROM things ORDER BY name")
}

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

func migrationsInOrder(t *testing.T, url string) {
	d := open(t, url)
	steps := files{
		"00001_make":   `CREATE TABLE log (step BIGINT NOT NULL);`,
		"00002_second": `INSERT INTO log (step) SELECT count(*) + 2 FROM log;`,
		"00010_tenth":  `INSERT INTO log (step) SELECT count(*) + 2 FROM log;`,
	}
	for range 2 { // the second time there is nothing to do
		if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
			t.Fatalf("Migrate: %v", err)
		}
	}
	steps["00011_later"] = `INSERT INTO log (step) VALUES (11);`
	if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
		t.Fatalf("Migrate with one more: %v", err)
	}
	if got, want := logged(t, d), "2 3 11"; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
}

// logged returns the content of the table log.
func logged(t *testing.T, d *db.DB) string {
	t.Helper()
	var steps []string
	err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
		steps, err = db.All(t.Context(), tx, func(row db.Scanner) (s string, err error) {
			return s, row.Scan(&s)
		}, "SELECT CAST(step AS TEXT) FROM log ORDER BY log.step")
		return err
	})
	if err != nil {
		t.Fatalf("read log: %v", err)
	}
	return strings.Join(steps, " ")
}

func migrationSets(t *testing.T, url string) {
	d := open(t, url)
	for _, set := range []string{"jobs", "scripts"} {
		step := files{"00001_make": "CREATE TABLE " + set + " (id BIGINT);"}
		if err := d.Migrate(t.Context(), set, step.fs()); err != nil {
			t.Errorf("Migrate %s: %v", set, err)
		}
	}
	if err := d.Migrate(t.Context(), "Not a name; DROP TABLE jobs", schema.fs()); err == nil {
		t.Error("an invalid set name was accepted")
	}
}

func migrationFails(t *testing.T, url string) {
	d := open(t, url)
	steps := files{
		"00001_make": `CREATE TABLE log (step BIGINT NOT NULL);`,
		"00002_half": `INSERT INTO log (step) VALUES (2); INSERT INTO nowhere VALUES (1);`,
	}
	err := d.Migrate(t.Context(), "steps", steps.fs())
	if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), "00002_half") || fault.HintOf(err) == "" {
		t.Errorf("Migrate = %v, want a fault with a hint that names the file", err)
	}
	if got := logged(t, d); got != "" {
		t.Errorf("a part of the migration is left: %q", got)
	}
	steps["00002_half"] = `INSERT INTO log (step) VALUES (2);`
	if err := d.Migrate(t.Context(), "steps", steps.fs()); err != nil {
		t.Errorf("Migrate after the repair: %v", err)
	}
	if got := logged(t, d); got != "2" {
		t.Errorf("steps %q, want 2", got)
	}
}

func migrationNewer(t *testing.T, url string) {
	d := openMigrated(t, url)
	older := maps.Clone(schema)
	delete(older, "00002_parts")
	if err := d.Migrate(t.Context(), "dbtest", older.fs()); fault.HintOf(err) == "" {
		t.Errorf("Migrate of an older program = %v, want a fault with a hint", err)
	}
}

func migrationRace(t *testing.T, url string) {
	programs := []*db.DB{open(t, url), open(t, url), open(t, url)}
	var all sync.WaitGroup
	for _, d := range programs {
		all.Go(func() {
			if err := d.Migrate(t.Context(), "dbtest", schema.fs()); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	all.Wait()
	if err := addThing(t.Context(), programs[0], "after", 1); err != nil {
		t.Errorf("write after migrating: %v", err)
	}
}

// crashURL tells the child process which database to write to.
const crashURL = "LUANETTE_DBTEST_CRASH_URL"

// acked precedes the name of a row whose write has returned.
const acked = "acked "

// beChild makes this process the one that is killed, if it was started as such: it
// writes until then, and prints the name of every stored row.
func beChild() bool {
	url := os.Getenv(crashURL)
	if url == "" {
		return false
	}
	d, err := db.Open(context.Background(), url, db.Options{OutageTimeout: clocktest.Timeout})
	if err != nil {
		fmt.Println("open:", err)
		return true
	}
	failed := make(chan error)
	for writer := range 8 {
		go func() { failed <- writeForever(d, writer) }()
	}
	fmt.Println("write:", <-failed)
	return true
}

func writeForever(d *db.DB, writer int) error {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d-%d", writer, i)
		if err := addWhole(context.Background(), d, name); err != nil {
			return err
		}
		fmt.Println(acked + name) // one write to the pipe: lines stay whole
	}
}

// addWhole writes a thing with its two parts in one transaction.
func addWhole(ctx context.Context, d *db.DB, name string) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		if err := insertThing(ctx, tx, name, 2); err != nil {
			return err
		}
		for _, label := range []string{"left", "right"} {
			body := strings.Repeat(label, 500)
			if _, err := tx.Exec(ctx, "INSERT INTO parts (thing, label) VALUES ($1, $2)", name, body); err != nil {
				return err
			}
		}
		return nil
	})
}

// crash kills a process while it writes. Acknowledged rows must be stored; others must be
// stored completely or not at all.
func crash(t *testing.T, url string) {
	openMigrated(t, url)
	names := killMidWrite(t, url, 300)

	d := open(t, url)
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("Check after the crash: %v", err)
	}
	stored, parts := atOnce(t, d)
	for _, name := range names {
		if !stored[name] {
			t.Errorf("row %s was acknowledged and is lost", name)
		}
	}
	if want := 2 * len(stored); parts != want {
		t.Errorf("%d parts of %d things, want %d: a write is stored in part", parts, len(stored), want)
	}
	if err := addWhole(t.Context(), d, "after the crash"); err != nil {
		t.Errorf("write after the crash: %v", err)
	}
}

// killMidWrite runs a child until it has acknowledged n rows, kills it, and returns all
// rows that it acknowledged.
func killMidWrite(t *testing.T, url string, n int) (names []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, _, _ := strings.Cut(t.Name(), "/")
	child := exec.CommandContext(t.Context(), self, "-test.run=^"+root+"$", "-test.count=1")
	child.Env = append(os.Environ(), crashURL+"="+url)
	out, in := io.Pipe()
	child.Stdout, child.Stderr = in, in
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() {
		err := child.Wait()
		_ = in.Close()
		exited <- err
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, ok := strings.CutPrefix(lines.Text(), acked)
		if !ok {
			t.Errorf("child says: %s", lines.Text())
			continue
		}
		if names = append(names, name); len(names) == n {
			_ = child.Process.Kill()
		}
	}
	var exit *exec.ExitError
	if err := <-exited; !errors.As(err, &exit) || len(names) < n {
		t.Fatalf("child ended with %v after %d rows, want it killed after %d", err, len(names), n)
	}
	return names
}

// atOnce returns the things and the number of parts in one Read: the server may still be
// committing the last write of the killed process.
func atOnce(t *testing.T, d *db.DB) (stored map[string]bool, parts int) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		names, err := thingNames(t.Context(), tx)
		if err != nil {
			return err
		}
		stored = map[string]bool{}
		for _, name := range names {
			stored[name] = true
		}
		return tx.QueryRow(t.Context(), "SELECT count(*) FROM parts").Scan(&parts)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored, parts
}

// twoNodes has two programs read and write the same row in one Write each: no update may
// be lost.
func twoNodes(t *testing.T, url string) {
	const each = 25
	nodes := []*db.DB{openMigrated(t, url), open(t, url), open(t, url)}
	if err := addThing(t.Context(), nodes[0], "counter", 0); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, d := range nodes {
		for range 2 {
			all.Go(func() {
				for range each {
					if err := increment(t.Context(), d); err != nil {
						t.Errorf("Write: %v", err)
					}
				}
			})
		}
	}
	all.Wait()
	if got, want := counter(t, nodes[0]), 2*each*len(nodes); got != want {
		t.Errorf("counter = %d, want %d", got, want)
	}
}

// skew has two programs each check whether there is a thing and insert one of another
// name if there is none: only one may find none.
func skew(t *testing.T, url string) {
	nodes := []*db.DB{openMigrated(t, url), open(t, url)}
	for round := range 10 {
		var all sync.WaitGroup
		for i, d := range nodes {
			all.Go(func() {
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					var n int
					if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM things WHERE size = $1", round).Scan(&n); err != nil || n > 0 {
						return err
					}
					return insertThing(t.Context(), tx, fmt.Sprint(round, " ", i), round)
				})
				if err != nil {
					t.Errorf("Write: %v", err)
				}
			})
		}
		all.Wait()
	}
	if got := things(t, nodes[0]); len(got) != 10 {
		t.Errorf("%d things %q, want 10", len(got), got)
	}
}

func claims(t *testing.T, url string) {
	one, other := open(t, url), open(t, url)
	release, err := one.Claim(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Claim(t.Context(), "jobs"); fault.CodeOf(err) != fault.Conflict || fault.HintOf(err) == "" {
		t.Errorf("second Claim = %v, want conflict with a hint", err)
	}
	if also, err := other.Claim(t.Context(), "hoot"); err != nil {
		t.Errorf("Claim of something else: %v", err)
	} else if err := also(); err != nil {
		t.Error(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	again, err := other.Claim(t.Context(), "jobs")
	if err != nil {
		t.Fatalf("Claim after release: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// news sends notifications inside and outside of Writes, including long and binary ones.
func news(t *testing.T, url string) {
	d := openMigrated(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan db.Notification, 100)
	var all sync.WaitGroup
	all.Go(func() { _ = d.Listen(ctx, "things", func(n db.Notification) { received <- n }) })
	defer all.Wait()
	defer cancel()
	if first := <-received; !first.Missed {
		t.Errorf("first notification %+v, want Missed", first)
	}
	long := strings.Repeat("long, with an umlaut: ä ", 3000)
	want := []string{"", "plain", "zero\x00 and \xff", long, "with a write", "last"}
	for _, payload := range want[:4] {
		if err := d.Notify(ctx, "things", payload); err != nil {
			t.Error(err)
		}
	}
	if err := d.Notify(ctx, "others", "not for us"); err != nil {
		t.Error(err)
	}
	notify := func(payload string, end error) {
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := tx.Notify("things", payload); err != nil {
				return err
			}
			return end
		})
		if (err == nil) != (end == nil) {
			t.Error(err)
		}
	}
	notify("never", fault.New(fault.Conflict, "no"))
	notify("with a write", nil)
	notify("last", nil)
	var got []string
	for range want {
		got = append(got, (<-received).Payload)
	}
	if !slices.Equal(got, want) {
		t.Errorf("received %.200q, want %.200q", got, want)
	}
	if err := d.Notify(ctx, "No Topic", ""); fault.CodeOf(err) != fault.Internal {
		t.Errorf("Notify on a bad topic = %v", err)
	}
}

// slowListener tests that a slow listener receives Missed.
func slowListener(t *testing.T, url string) {
	d := open(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	received, again, hold := make(chan db.Notification), make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		first := true
		_ = d.Listen(ctx, "things", func(n db.Notification) {
			if first {
				first = false
				received <- n
				<-hold
				return
			}
			if n.Missed {
				close(again)
				<-ctx.Done()
			}
		})
	})
	<-received
	for range 3 {
		for range 4000 {
			if err := d.Notify(ctx, "things", "more"); err != nil {
				t.Error(err)
			}
		}
	}
	marker := make(chan struct{})
	all.Go(func() { // receives after the last notification, so that all have arrived
		_ = d.Listen(ctx, "end", func(n db.Notification) {
			if n.Missed {
				_ = d.Notify(ctx, "end", "now")
			} else {
				close(marker)
				<-ctx.Done()
			}
		})
	})
	<-marker
	close(hold)
	<-again
	cancel()
	all.Wait()
}
