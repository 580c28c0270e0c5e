package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestEntriesOutliveTheProcess records while the database is away: the next process on the
// folder adds the entries to the chain, each once.
func TestEntriesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	server, folder := dbtest.StartServer(t), t.TempDir()
	first, err := db.Open(t.Context(), server.URL, db.Options{OutageTimeout: clocktest.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	l := opened(t, first, audit.Options{Node: "a", Spool: folder})
	record := func(l *audit.Log, from, to int) {
		for i := from; i < to; i++ {
			l.Record(t.Context(), audit.Entry{Who: "key:web", Action: audit.Call, Subject: fmt.Sprint("notes.read", i)})
		}
	}
	record(l, 0, 1)
	if _, err := l.Chains(t.Context()); err != nil { // it is stored
		t.Fatal(err)
	}
	server.Stop(t, "immediate")
	record(l, 1, 300)
	spooled := func() []byte {
		paths, _ := filepath.Glob(filepath.Join(folder, "*.jsonl"))
		if len(paths) != 1 {
			return nil
		}
		text, _ := os.ReadFile(paths[0])
		return text
	}
	clocktest.Await(t, func() bool { return strings.Count(string(spooled()), "\n") == 299 })
	record(l, 300, 330)
	first.LimitOutages(0)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // the server is away
	left := spooled()

	server.Start(t)
	second := dbtest.Open(t, server.URL)
	l = opened(t, second, audit.Options{Node: "a", Spool: folder})
	complete := func() {
		t.Helper()
		found, err := l.Verify(t.Context())
		if err != nil || len(found) != 1 || found[0].Entries != 330 || len(found[0].Problems) > 0 {
			t.Errorf("%+v, %v", found, err)
		}
		if names, _ := os.ReadDir(folder); len(names) > 0 {
			t.Errorf("%s is still there", names[0])
		}
	}
	complete()
	// A process that was killed when it had stored them leaves the file, and half a line.
	if err := os.WriteFile(filepath.Join(folder, "KILLED.jsonl"), append(left, `{"node":"a","se`...), 0o600); err != nil {
		t.Fatal(err)
	}
	l = opened(t, second, audit.Options{Node: "a", Spool: folder})
	complete()
}

// TestSpoolIsRemoved checks that nothing is left of a spool once the entries are stored.
func TestSpoolIsRemoved(t *testing.T) {
	t.Parallel()
	server, folder := dbtest.StartServer(t), t.TempDir()
	d := dbtest.OpenWith(t, server.URL, db.Options{OutageTimeout: clocktest.Timeout})
	l := opened(t, d, audit.Options{Node: "a", Spool: folder})
	server.Stop(t, "immediate")
	l.Record(t.Context(), audit.Entry{Action: audit.Call, Subject: "x"})
	files := func() int { names, _ := os.ReadDir(folder); return len(names) }
	clocktest.Await(t, func() bool { return files() == 2 })
	server.Start(t)
	clocktest.Await(t, func() bool { return files() == 0 })
	if found := problems(t, l); found != "" {
		t.Error(found)
	}
}

// TestLostEntriesAreSaid checks that the log says how many entries are missing in it.
func TestLostEntriesAreSaid(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	l := opened(t, d, audit.Options{Node: "a", Queue: 1})
	holds, release, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		held <- d.Write(context.Background(), func(*db.Tx) error {
			close(holds)
			<-release
			return nil
		})
	}()
	<-holds
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 { // one in the queue, one beyond it
		l.Record(gone, audit.Entry{Action: audit.Call, Subject: "x"})
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	var found []audit.Verified
	clocktest.Await(t, func() bool {
		found, _ = l.Verify(t.Context())
		return len(found) == 1 && found[0].Lost == 3
	}, func() string { return fmt.Sprintf("%+v", found) })
	entries, err := l.Find(t.Context(), audit.Filter{Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Action != audit.Lost || entries[0].Subject != "3 entries" || time.Since(entries[0].At) < 0 {
		t.Errorf("%+v, %v", entries, err)
	}
}
