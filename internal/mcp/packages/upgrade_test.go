package packages

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

func TestUpgradeTakesEffectWhenItIsUsed(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server@^1.0.0"))
	old, err := s.Ensure(t.Context(), r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rollback(t.Context(), r); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("rollback of a first version: %v", err)
	}
	for _, version := range []string{"1.1.0", "2.0.0"} {
		from.Publish("@scope/server", version, map[string]any{"bin": "main.js"}, map[string]string{"main.js": program})
	}
	r.Start.Install = append(r.Start.Install, "npm_config_cache="+t.TempDir())
	if o, err := s.Offered(t.Context(), r); err != nil || o.Wanted != "1.1.0" || o.Latest != "2.0.0" {
		t.Errorf("offered %+v, %v", o, err)
	}
	proposed, err := s.Upgrade(t.Context(), r, "", quiet)
	if err != nil || proposed.Version != "1.1.0" {
		t.Fatal(proposed.Version, err)
	}
	if now, _ := s.Find(r); now.Version != "1.0.0" {
		t.Errorf("before it is used, %s is in effect", now.Version)
	}
	if err := s.Use(t.Context(), r, proposed); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Prune(t.Context(), func(string) bool { return true }); len(removed) > 0 || err != nil {
		t.Errorf("pruned %q, %v: one is in effect, and one is the previous", removed, err)
	}
	if back, err := s.Rollback(t.Context(), r); err != nil || back.Folder != old.Folder || back.Previous.Version != "1.1.0" {
		t.Errorf("rollback to %+v, %v", back, err)
	}
	if removed, err := s.Prune(t.Context(), func(string) bool { return false }); len(removed) != 2 || err != nil {
		t.Errorf("pruned %q, %v: nothing is used", removed, err)
	}
}
