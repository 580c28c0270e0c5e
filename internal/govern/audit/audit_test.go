package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func opened(t *testing.T, d *db.DB, o audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func fill(t *testing.T, d *db.DB, n int) *audit.Log {
	t.Helper()
	l := opened(t, d, audit.Options{Node: "a"})
	for i := range n {
		l.Record(t.Context(), audit.Entry{Who: "key:web", Name: "web", Action: audit.Call, Subject: fmt.Sprintf("git.tool_%d", i), Args: audit.Digest(nil), Decision: "allow", Took: int64(i)})
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func problems(t *testing.T, l *audit.Log) string {
	t.Helper()
	found, err := l.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range found {
		all = append(all, v.Problems...)
	}
	return strings.Join(all, "; ")
}

func TestChainVerifies(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	l := fill(t, d, 1500)
	if got := problems(t, l); got != "" {
		t.Error(got)
	}
	entries, err := l.Find(t.Context(), audit.Filter{Who: "web", Tool: "git.tool_149*", Limit: 20})
	if err != nil || len(entries) != 11 || entries[0].Seq <= entries[10].Seq {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// Old entries are deleted; the rest still verifies.
func TestDeleteOld(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	l := opened(t, d, audit.Options{Node: "a"})
	now := time.Now()
	for i := range 10 {
		l.Record(t.Context(), audit.Entry{At: now.Add(time.Duration(i-10) * time.Hour), Action: audit.Call, Subject: "x"})
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.DeleteOld(t.Context(), audit.AgeLimits{Before: now.Add(-5*time.Hour - time.Minute)}); err != nil {
		t.Fatal(err)
	}
	found, err := l.Verify(t.Context())
	if err != nil || len(found) != 1 || found[0].Entries != 5 || found[0].Cut != 5 || len(found[0].Problems) > 0 {
		t.Errorf("%+v %v", found, err)
	}
}

// Several processes of one node append to one chain, and no entry is lost.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var work sync.WaitGroup
		const logs, each = 3, 200
		for range logs {
			l := opened(t, d, audit.Options{Node: "a", Queue: 4}) // so small that callers block
			work.Go(func() {
				var callers sync.WaitGroup
				for range 4 {
					callers.Go(func() {
						for range each / 4 {
							l.Record(t.Context(), audit.Entry{Action: audit.Call, Subject: "x"})
						}
					})
				}
				callers.Wait()
				if err := l.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		found, err := opened(t, d, audit.Options{}).Verify(t.Context())
		if err != nil || len(found) != 1 || found[0].Entries != logs*each || len(found[0].Problems) > 0 {
			t.Errorf("%+v %v", found, err)
		}
	})
}

// TestRecordEndsWithItsContext checks that callers who have gone wait for no database, and that
// what they did is stored when it answers again, up to a limit, with how many were lost.
func TestRecordEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	const queue = 2
	l := opened(t, d, audit.Options{Node: "a", Queue: queue})
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
	for range 2*queue + 3 {
		l.Record(gone, audit.Entry{Action: audit.Call, Subject: "x"})
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	var entries []audit.Entry
	for range 2 { // that some were lost is recorded with the first that are written, and written after them
		var err error
		if entries, err = l.Find(t.Context(), audit.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
	lost := slices.IndexFunc(entries, func(e audit.Entry) bool { return e.Action == audit.Lost })
	if len(entries) != 2*queue+1 || lost < 0 || entries[lost].Size != 3 {
		t.Errorf("entries %+v, want %d and that 3 were lost", entries, 2*queue)
	}
}

// A reader finds entries that were recorded just before.
func TestReadersSeeWhatWasRecorded(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	l := opened(t, d, audit.Options{Node: "a"})
	for n := range 5 {
		l.Record(t.Context(), audit.Entry{Action: audit.Call, Subject: "x"})
		if entries, err := l.Find(t.Context(), audit.Filter{}); err != nil || len(entries) != 2*n+1 {
			t.Fatalf("%d entries (%v), want %d", len(entries), err, 2*n+1)
		}
		l.Record(t.Context(), audit.Entry{Action: audit.Call, Subject: "y"})
		if chains, err := l.Chains(t.Context()); err != nil || len(chains) != 1 || chains[0].Seq != int64(2*n+2) {
			t.Fatalf("chains %v (%v), want one of %d", chains, err, 2*n+2)
		}
	}
}

// An export can be verified without this program: the hash is that of the JSON with an empty hash.
func TestHashIsOfTheEntry(t *testing.T) {
	t.Parallel()
	l := fill(t, dbtest.Open(t, dbtest.SQLite(t)), 2)
	entries, err := l.Find(t.Context(), audit.Filter{Node: "a"})
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	second := entries[1]
	want := second.Hash
	second.Hash = ""
	raw, err := json.Marshal(second)
	if err != nil || audit.Digest(raw) != want || second.Prev != entries[0].Hash {
		t.Errorf("%s is not the hash of %s", want, raw)
	}
}

// Entries that are added while a chain is verified are not reported.
func TestVerifyWhileEntriesAreAdded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		fill(t, d, 2100) // many, so that verifying takes a while
		reader := opened(t, d, audit.Options{})
		stop := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := opened(t, d, audit.Options{Node: "a"})
				l.Record(t.Context(), audit.Entry{Action: audit.Call, Subject: "x"})
				if err := l.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
		for range 8 {
			if found := problems(t, reader); found != "" {
				t.Error(found)
				break
			}
		}
		close(stop)
		writer.Wait()
	})
}
