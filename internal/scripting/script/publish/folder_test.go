package publish

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/store/cas"
)

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p publishFixture) names(t *testing.T) string {
	t.Helper()
	tools, err := p.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range tools {
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

func TestFolder(t *testing.T) {
	t.Parallel()
	data, dir, d := t.TempDir(), t.TempDir(), newSourceStore()
	p := openPublished(t, data, d)
	var log strings.Builder
	f := NewFolder(dir, p.Published, d, slog.New(slog.NewTextHandler(&log, nil)))
	sync := func(want string) {
		t.Helper()
		if err := f.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.names(t); got != want {
			t.Errorf("published %q, want %q", got, want)
		}
	}
	file := filepath.Join(dir, "greet.lua")

	sync("")
	save(t, file, named("greet", "one"))
	save(t, filepath.Join(dir, "notes.txt"), "not a script")
	sync("greet")

	save(t, file, named("greet", "two"))
	sync("greet")
	if got := p.call(t, "greet", "{}"); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("after a save greet = %s", got.Structured)
	}
	if parent := d.parents[cas.Sum([]byte(named("greet", "two")))]; parent != cas.Sum([]byte(named("greet", "one"))) {
		t.Errorf("the new version comes from %s", parent.Short())
	}

	save(t, file, "function describe( oops")
	sync("greet")
	sync("greet")
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || f.Problems()["greet.lua"] == nil {
		t.Errorf("%d warnings, problems %v:\n%s", n, f.Problems(), &log)
	}
	if got := p.call(t, "greet", "{}"); string(got.Structured) != `{"answer":"two","n":1}` {
		t.Errorf("with a broken file greet = %s", got.Structured)
	}

	save(t, file, named("welcome", "three"))
	sync("welcome")
	if len(f.Problems()) != 0 {
		t.Errorf("problems remain: %v", f.Problems())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	sync("")
}

func TestFolderAfterARestart(t *testing.T) {
	t.Parallel()
	data, dir, d := t.TempDir(), t.TempDir(), newSourceStore()
	quiet := slog.New(slog.DiscardHandler)
	for _, name := range []string{"unchanged", "removed", "broken"} {
		save(t, filepath.Join(dir, name+".lua"), named(name, name))
	}
	p := openPublished(t, data, d)
	if err := NewFolder(dir, p.Published, d, quiet).Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.publish(t, named("by_hand", "x"), "")

	save(t, filepath.Join(dir, "broken.lua"), "function describe( oops")
	if err := os.Remove(filepath.Join(dir, "removed.lua")); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(dir, "taken.lua"), named("by_hand", "file"))
	again := openPublished(t, data, d)
	f := NewFolder(dir, again.Published, d, quiet)
	if err := f.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := again.names(t); got != "broken by_hand unchanged" {
		t.Errorf("published %q", got)
	}
	if got := again.call(t, "by_hand", "{}"); string(got.Structured) != `{"answer":"x","n":1}` {
		t.Errorf("by_hand = %s", got.Structured)
	}
	if f.Problems()["taken.lua"] == nil {
		t.Error("a file took a name that was published by hand")
	}
}
