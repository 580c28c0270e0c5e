package approval_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func record(t *testing.T, l host.ResumeStore, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := l.Record([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
}

func past(t *testing.T, l host.ResumeStore) string {
	t.Helper()
	ctx, _ := db.WaitForDatabase(t.Context())
	records, err := l.Past(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s", records)
}

// TestARunIsTakenOver checks that another process continues a run from its records
// when the lease has expired, and that the first process can record nothing more.
func TestARunIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	dying, next := b.open(t), b.open(t)
	id := ask(t, dying, paused("run:1", "", "ann"))
	decide(t, dying, id, host.Answer{Allow: true})
	old := dying.ResumeStore(id)
	record(t, old, "one", "two")

	found := b.watch(t, next) // it has checked, and did not take the run
	if len(found) > 0 {
		t.Fatal("taken over from a process that lives")
	}
	b.time.Advance(11 * time.Second)
	a := <-found
	if a.ID != id || string(a.Resume) != "kept" || a.State != approval.Allowed {
		t.Fatalf("taken over: %+v", a)
	}
	l := next.ResumeStore(id)
	if got := past(t, l); got != "[one two]" {
		t.Errorf("came to %s", got)
	}
	wantCode(t, old.Record([]byte("three")), fault.Conflict)
	wantCode(t, old.Finish(t.Context(), json.RawMessage(`{}`)), fault.Conflict)
	record(t, l, "more")
	if err := l.Finish(t.Context(), json.RawMessage(`{"result":1}`)); err != nil {
		t.Fatal(err)
	}
	if a := get(t, next, id); string(a.Outcome) != `{"result":1}` || a.Resume != nil || past(t, l) != "[]" {
		t.Errorf("finished: %+v", a)
	}
	wantCode(t, l.Record([]byte("after its end")), fault.Conflict)
	b.looked(t, 1)
	b.time.Advance(time.Minute)
	b.looked(t, 1)
	if len(found) > 0 {
		t.Error("taken over though it is over")
	}
}

// TestARunningProcessKeepsItsRuns checks that a process that renews its leases keeps
// its runs, however long they take.
func TestARunningProcessKeepsItsRuns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	busy, next := b.open(t), b.open(t)
	b.watch(t, busy)
	id := ask(t, busy, paused("run:1", "", "ann"))
	decide(t, busy, id, host.Answer{Allow: true})
	for range 20 {
		b.time.Advance(2 * time.Second)
		b.looked(t, 1)
	}
	found := b.watch(t, next)
	b.looked(t, 2)
	if len(found) > 0 {
		t.Fatalf("taken over: %+v", <-found)
	}
	record(t, busy.ResumeStore(id), "still here")
}

// TestARunThatAskedAgain checks that a run with a later pending request is not
// continued from its first one, although its process died.
func TestARunThatAskedAgain(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	o := b.open(t)
	first := ask(t, o, paused("run:1", "", "ann"))
	decide(t, o, first, host.Answer{Allow: true})
	b.time.Advance(time.Second)
	second := ask(t, o, paused("run:1", "", "bob"))
	b.time.Advance(time.Minute)
	next := b.open(t)
	found := b.watch(t, next)
	if a := get(t, next, first); len(found) > 0 || string(a.Outcome) != `{"output":[],"status":"pending_approval"}` {
		t.Errorf("the first: %+v", a)
	}
	if a := get(t, next, second); a.State != approval.Pending || string(a.Resume) != "kept" {
		t.Errorf("the second: %+v", a)
	}
}

// TestAClosedStore checks that a closed store records nothing more, and that the next
// process continues.
func TestAClosedStore(t *testing.T) {
	t.Parallel()
	o := newFixture(t).open(t)
	id := ask(t, o, paused("run:1", "", "ann"))
	decide(t, o, id, host.Answer{})
	o.Close()
	wantCode(t, o.ResumeStore(id).Record(nil), fault.Unavailable)
	wantCode(t, o.ResumeStore(id).Finish(t.Context(), nil), fault.Unavailable)
}

// TestARecordWaitsForTheDatabase checks that the steps of an approved run are
// recorded, however long the database is unreachable.
func TestARecordWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := dbtest.OpenWith(t, server.URL, db.Options{OutageTimeout: time.Nanosecond})
	o, err := approval.Open(t.Context(), d, approval.Options{Policy: approval.Policy{Default: approval.Writes}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	id := ask(t, o, paused("run:1", "", "ann"))
	decide(t, o, id, host.Answer{Allow: true})
	server.Stop(t, "immediate")
	back := make(chan struct{})
	go func() {
		defer close(back)
		server.Start(t)
	}()
	l := o.ResumeStore(id)
	record(t, l, "one", "two")
	<-back
	if got := past(t, l); got != "[one two]" {
		t.Errorf("recorded %s", got)
	}
	server.Stop(t, "immediate")
	ended := make(chan error)
	go func() { ended <- l.Record([]byte("three")) }()
	o.Close()
	if err := <-ended; err == nil {
		t.Error("recorded although the database was unreachable")
	}
}
