package dbtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
)

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
