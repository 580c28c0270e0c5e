package upstreamset_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// startup.lua can leave out an upstream of the configuration, until that is loaded again.
func TestLocalUpstreams(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.configure(map[string]string{"a": unreachable})
	f.must(f.AddLocal(t.Context(), upstream.Spec{Name: "b", Settings: upstream.Settings{URL: unreachable}}))
	for _, name := range []string{"a", "b"} {
		if removed, err := f.RemoveLocal(name); !removed || err != nil || f.Has(name) {
			t.Errorf("%s: removed %v, %v", name, removed, err)
		}
	}
	if removed, err := f.RemoveLocal("b"); removed || err != nil {
		t.Errorf("removed again %v, %v", removed, err)
	}
	f.must(f.AddLocal(t.Context(), upstream.Spec{Name: "a", Settings: upstream.Settings{URL: unreachable}})) // as it is configured
	f.want("a", "config", unreachable)
	if _, err := f.RemoveLocal("a"); err != nil || f.Has("a") {
		t.Errorf("not removed: %v", err)
	}
	f.configure(map[string]string{"a": unreachable})
	f.want("a", "config", unreachable)
}

// What startup.lua adds is there after each start, also if a user removed it before. What a
// user put in its place stays.
func TestStartupRestoresWhatWasRemoved(t *testing.T) {
	t.Parallel()
	database := dbtest.Open(t, dbtest.SQLite(t))
	atStartup := upstream.Spec{Name: "a", Settings: upstream.Settings{URL: unreachable + "/startup"}}
	started := func() *fixture {
		t.Helper()
		f := open(t, database, key, true)
		f.must(f.AddLocal(t.Context(), atStartup))
		return f
	}
	f := started()
	if removed, err := f.Remove(t.Context(), "a"); !removed || err != nil || f.Has("a") {
		t.Fatalf("removed %v, %v", removed, err)
	}
	f = started()
	if f.want("a", "startup", atStartup.URL); !f.Has("a") {
		t.Error("it is still removed after another start")
	}
	f.must(f.add("a", unreachable+"/added"))
	f.must(f.Disable(t.Context(), "a"))
	f = started()
	if f.want("a", "added", unreachable+"/added"); f.Has("a") {
		t.Error("startup.lua enabled what a user disabled")
	}
}

// A private upstream is connected, and shown by none of the lists. It is disconnected when
// nobody has used it for an hour.
func TestPrivateUpstreams(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	start := time.Now()
	use := func(id, url string, after time.Duration) {
		t.Helper()
		f.must(f.UsePrivate(upstream.Spec{Name: upstreamset.PrivateName(id), Settings: upstream.Settings{URL: url}}, start.Add(after)))
	}
	name := upstreamset.PrivateName("7")
	use("7", unreachable, 0)
	if f.Has(name) || len(f.List()) != 0 || len(f.Namespaces()) != 0 || !upstreamset.IsPrivate(name) {
		t.Errorf("listed: %v", f.List())
	}
	if !f.Manager.Has(name) || len(f.audited) != 0 {
		t.Errorf("not connected, or audited: %v", f.audited)
	}
	use("7", unreachable+"/2", time.Minute)
	if s, ok := f.Manager.Status(name); !ok || s.Desired.URL != unreachable+"/2" {
		t.Errorf("moved to another address: %+v", s.Desired)
	}
	use("7", unreachable+"/2", 50*time.Minute)
	use("8", unreachable, 100*time.Minute)
	if !f.Manager.Has(name) {
		t.Error("disconnected although it was used")
	}
	use("8", unreachable, 111*time.Minute)
	if f.Manager.Has(name) || !f.Manager.Has(upstreamset.PrivateName("8")) {
		t.Error("not disconnected, or another one was")
	}
}
