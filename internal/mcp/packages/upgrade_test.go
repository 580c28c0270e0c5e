package packages

import (
	"bytes"
	"slices"
	"strings"
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

func TestUpgradeSaysWhichPackagesComeAndGo(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server"))
	old, err := s.Ensure(t.Context(), r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	from.Publish("new", "3.0.0", nil, map[string]string{"index.js": ""})
	from.Publish("@scope/server", "2.0.0", map[string]any{"bin": "main.js", "dependencies": map[string]any{"new": "*"}}, map[string]string{"main.js": program})
	r.Start.Install = append(r.Start.Install, "npm_config_cache="+t.TempDir())
	next, err := s.Upgrade(t.Context(), r, "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Compare(old, next)
	if err != nil || !slices.Equal(d.Added, []string{"new@3.0.0"}) || !slices.Equal(d.Removed, []string{"dep@1.0.0"}) ||
		!slices.Equal(d.Changed, []string{"@scope/server 1.0.0 -> 2.0.0"}) {
		t.Errorf("difference %+v, %v", d, err)
	}
}

func TestFrozenPackagesAreTheSameElsewhere(t *testing.T) {
	t.Parallel()
	from := published(t)
	begun := start(t, from, "@scope/server")
	ours, theirs := New(Options{Folder: t.TempDir()}), New(Options{Folder: t.TempDir()})
	record, err := ours.Ensure(t.Context(), request(t, begun), quiet)
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := ours.Freeze(record)
	var text bytes.Buffer
	if err != nil || (FrozenFile{Version: 1, Packages: map[string]Frozen{"key": frozen}}).Write(&text) != nil {
		t.Fatal(err)
	}
	file, err := ReadFrozen(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	from.Publish("dep", "1.1.0", nil, map[string]string{"index.js": "exports.text = 'second'"})
	newest, err := theirs.Ensure(t.Context(), request(t, start(t, from, "@scope/server")), quiet)
	if err != nil {
		t.Fatal(err)
	}
	thawed, err := theirs.Thaw(t.Context(), request(t, begun), file.Packages["key"], quiet)
	if err != nil || thawed.Folder != record.Folder || thawed.Lock != record.Lock || thawed.Previous == nil || thawed.Previous.Folder != newest.Folder {
		t.Errorf("thawed %+v, %v; frozen was %+v", thawed, err, record)
	}
	changed := file.Packages["key"]
	changed.Lock = bytes.ReplaceAll(changed.Lock, []byte(record.Integrity), []byte("sha512-"+strings.Repeat("A", 86)+"=="))
	r := request(t, begun)
	r.Start.Install = append(r.Start.Install, "npm_config_cache="+t.TempDir())
	if _, err := New(Options{Folder: t.TempDir()}).Thaw(t.Context(), r, changed, quiet); err == nil || !strings.Contains(err.Error(), "EINTEGRITY") {
		t.Errorf("with another checksum: %v", err)
	}
}
