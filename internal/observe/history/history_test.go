package history_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/history"
)

// at returns a history whose clock shows t, and a function that moves it on.
func at(t time.Time) (*history.Calls, func(time.Duration)) {
	v := clock.NewVirtual(t)
	return history.New(v), v.Advance
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPointsAreCountedInTheirStep(t *testing.T) {
	t.Parallel()
	calls, advance := at(noon)
	for range 3 {
		calls.Record(history.Call{Server: "files", Tool: "read", Took: 2 * time.Millisecond, Bytes: 10})
	}
	advance(20 * time.Second)
	calls.Record(history.Call{Server: "files", Tool: "write", Took: 800 * time.Millisecond, Failed: true})
	r := calls.Report(time.Hour, principal.Local())
	n := len(r.Points)
	if first, last := r.Points[n-3], r.Points[n-1]; first.Calls != 3 || first.Errors != 0 || last.Calls != 1 || last.Errors != 1 || r.Points[n-2].Calls != 0 {
		t.Errorf("%+v", r.Points[n-3:])
	}
	if p := r.Points[n-3].P50; p < 1.7 || p > 2.3 {
		t.Errorf("p50 of 2 ms is %v", p)
	}
	if p := r.Total.P99; r.Total.Calls != 4 || p < 700 || p > 900 {
		t.Errorf("%+v", r.Total)
	}
	if r.From.Add(time.Duration(n-3)*10*time.Second) != noon {
		t.Errorf("begins at %s with %d points", r.From, n)
	}
	if len(r.Tools) != 2 || r.Tools[0] != (history.Tool{Name: "files.read", Calls: 3, Bytes: 30}) || r.Tools[1].Errors != 1 {
		t.Errorf("%+v", r.Tools)
	}
	if s := r.Servers["files"]; s.Total.Calls != 4 || s.Total.Errors != 1 {
		t.Errorf("%+v", s.Total)
	}
}

func TestOldCallsAreForgotten(t *testing.T) {
	t.Parallel()
	calls, advance := at(noon)
	calls.Record(history.Call{Server: "files", Tool: "read"})
	advance(90 * time.Minute)
	if r := calls.Report(time.Hour, principal.Local()); r.Total.Calls != 0 || len(r.Servers) != 0 || len(r.Tools) != 0 {
		t.Errorf("after 90 minutes: %+v", r)
	}
	if r := calls.Report(24*time.Hour, principal.Local()); r.Total.Calls != 1 || r.Step != 300 {
		t.Errorf("of the day: %+v", r.Total)
	}
	advance(24 * time.Hour)
	if r := calls.Report(24*time.Hour, principal.Local()); r.Total.Calls != 0 {
		t.Errorf("after a day: %+v", r.Total)
	}
}

func TestServersAndToolsAreBounded(t *testing.T) {
	t.Parallel()
	calls, advance := at(noon)
	for i := range 2500 {
		calls.Record(history.Call{Server: fmt.Sprintf("s%d", i), Tool: "t"})
		advance(time.Millisecond)
	}
	r := calls.Report(time.Hour, principal.Local())
	if len(r.Servers) != 500 || len(r.Tools) != 2000 || r.Total.Calls != 2500 {
		t.Errorf("%d servers, %d tools, %d calls", len(r.Servers), len(r.Tools), r.Total.Calls)
	}
	if _, known := r.Servers["s2499"]; !known {
		t.Error("the last one was dropped")
	}
}

func BenchmarkRecord(b *testing.B) {
	calls := history.New(nil)
	call := history.Call{Server: "files", Tool: "read", Took: time.Millisecond, Bytes: 100}
	b.ReportAllocs()
	for b.Loop() {
		calls.Record(call)
	}
}

// TestOrganisationsHaveTheirOwn: nobody learns the names of another organisation's servers.
func TestOrganisationsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	calls := history.New(nil)
	for _, server := range []string{"wiki", "github", "github@acme", "secret@beta"} {
		calls.Record(history.Call{Server: server, Tool: "read"})
	}
	member := principal.Principal{ID: "key:web", Org: "acme", Scopes: []principal.Scope{principal.Read}}
	r := calls.Report(time.Hour, member)
	if got := slices.Sorted(maps.Keys(r.Servers)); !slices.Equal(got, []string{"github", "wiki"}) {
		t.Errorf("servers %q", got)
	}
	if len(r.Tools) != 2 || r.Tools[0].Name != "github.read" || r.Tools[1].Name != "wiki.read" {
		t.Errorf("tools %+v", r.Tools)
	}
	if all := calls.Report(time.Hour, principal.Local()); len(all.Servers) != 4 || len(all.Tools) != 4 {
		t.Errorf("the owner sees %+v", all)
	}
}
