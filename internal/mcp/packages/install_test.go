package packages

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/packages/packagestest"
)

const program = "#!/usr/bin/env node\nconsole.log(require('dep').text, process.argv[2])\n"

// published is a registry with a server and what it depends on.
func published(t *testing.T) *packagestest.Registry {
	t.Helper()
	r := packagestest.New(t)
	r.Publish("dep", "1.0.0", nil, map[string]string{"index.js": "exports.text = 'first'"})
	r.Publish("@scope/server", "1.0.0", map[string]any{"bin": "main.js", "dependencies": map[string]any{"dep": "^1.0.0"}}, map[string]string{"main.js": program})
	return r
}

// start is how an upstream's npx is started in a test.
func start(t *testing.T, from *packagestest.Registry, args ...string) Start {
	t.Helper()
	env := from.Env(t)
	return Start{
		Command: "npx", Args: args, Env: append([]string{"TOKEN=of-the-server"}, env...), Install: env,
		Dir: t.TempDir(), Path: strings.TrimPrefix(env[0], "PATH="),
	}
}

// request is the request of a start, which npx must be able to mean.
func request(t *testing.T, start Start) Request {
	t.Helper()
	r, reason := Parse(start)
	if reason != "" || len(r.Specs) == 0 {
		t.Fatalf("%v: %q", start.Args, reason)
	}
	return r
}

// quiet is a report that nobody reads.
func quiet(string) {}

// entries are the folders in one of a store.
func entries(t *testing.T, s *Store, names ...string) []string {
	t.Helper()
	found, err := filepath.Glob(s.path(append(names, "*")...))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPackageIsInstalledOnce(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "-y", "@scope/server", "x"))
	var said []string
	record, err := s.Ensure(t.Context(), r, func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	if record.Version != "1.0.0" || record.Packages != 2 || !strings.HasPrefix(record.Integrity, "sha512-") || !slices.Contains(said, "resolving") {
		t.Errorf("record %+v, said %q", record, said)
	}
	p := s.Program(r, record)
	if p.Command != "node" || p.Args[1] != "x" || !slices.Contains(p.Env, "TOKEN=of-the-server") || strings.Contains(strings.Join(p.Env, " "), "npm_config") {
		t.Errorf("starts %+v", p)
	}
	from.Publish("@scope/server", "2.0.0", map[string]any{"bin": "main.js"}, map[string]string{"main.js": program})
	before := from.Requests()
	from.Close()
	if again, err := New(s.options).Ensure(t.Context(), r, quiet); err != nil || again.Folder != record.Folder || from.Requests() != before {
		t.Errorf("the second start: %+v, %v, %d requests", again, err, from.Requests()-before)
	}
	if left := append(entries(t, s, "tmp"), entries(t, s, "npm", "@scope+server")...); len(left) != 1 {
		t.Errorf("folders: %q", left)
	}
}

func TestInstallationsOfTheSamePackageAreOne(t *testing.T) {
	t.Parallel()
	from := published(t)
	folder, started := t.TempDir(), start(t, from, "@scope/server")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := New(Options{Folder: folder}).Ensure(t.Context(), request(t, started), quiet); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := from.Requests(); n > 4 {
		t.Errorf("%d requests for two packages", n)
	}
}

func TestProcessesTogetherInstallOneAtATime(t *testing.T) {
	t.Parallel()
	from := published(t)
	from.Publish("other", "1.0.0", map[string]any{"bin": "main.js"}, map[string]string{"main.js": program})
	folder, waits, first := t.TempDir(), make(chan struct{}), make(chan struct{})
	held := sync.OnceFunc(func() { close(first); <-waits })
	from.Hold(func(string) { held() })
	var mu sync.Mutex
	var order []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, text)
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, err := New(Options{Folder: folder}).Ensure(t.Context(), request(t, start(t, from, "@scope/server")), quiet)
		if note("the first is installed"); err != nil {
			t.Error(err)
		}
	})
	<-first
	both.Go(func() {
		waiting := sync.OnceFunc(func() { close(waits) })
		_, err := New(Options{Folder: folder}).Ensure(t.Context(), request(t, start(t, from, "other")), func(text string) {
			waiting()
			note(text)
		})
		if err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	if !slices.Equal(order[:3], []string{Waits, "the first is installed", "resolving"}) {
		t.Errorf("order: %q", order)
	}
}

func TestPackageThatIsGoneIsInstalledAgainAsItWas(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server"))
	record, err := s.Ensure(t.Context(), r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	from.Publish("dep", "1.1.0", nil, map[string]string{"index.js": "exports.text = 'second'"})
	if err := os.RemoveAll(s.path(record.Folder, "node_modules", "dep")); err != nil {
		t.Fatal(err)
	}
	repaired, done, err := s.Repair(t.Context(), r, record, quiet)
	if err != nil || !done || repaired.Lock != record.Lock || !exists(s.path(repaired.Folder, "node_modules", "dep")) {
		t.Fatalf("repaired %+v, %v, %v", repaired, done, err)
	}
	if _, done, _ := s.Repair(t.Context(), r, repaired, quiet); done {
		t.Error("it was repaired twice")
	}
	if err := os.RemoveAll(s.path("npm")); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Ensure(t.Context(), r, quiet); err != nil || again.Integrity != record.Integrity {
		t.Errorf("after everything was removed: %+v, %v", again, err)
	}
}

func TestChangedPackageIsRefused(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server"))
	if _, err := s.Ensure(t.Context(), r, quiet); err != nil {
		t.Fatal(err)
	}
	from.Replace("@scope/server", "1.0.0", map[string]any{"bin": "main.js"}, map[string]string{"main.js": "#!/usr/bin/env node\nsteal()"})
	if err := os.RemoveAll(s.path("npm")); err != nil {
		t.Fatal(err)
	}
	r.Start.Install = append(r.Start.Install, "npm_config_cache="+t.TempDir())
	if _, err := s.Ensure(t.Context(), r, quiet); err == nil || !strings.Contains(err.Error(), "is not what was installed before") {
		t.Errorf("err = %v", err)
	}
}

func TestWhyAPackageCannotBeInstalled(t *testing.T) {
	t.Parallel()
	from := published(t)
	from.Publish("library", "1.0.0", nil, map[string]string{"index.js": ""})
	from.Publish("two", "1.0.0", map[string]any{"bin": map[string]any{"a": "a.js", "b": "b.js"}}, map[string]string{"a.js": "", "b.js": ""})
	from.Publish("hopeful", "1.0.0", map[string]any{"bin": "a.js", "dependencies": map[string]any{"dep": "^7.0.0"}}, map[string]string{"a.js": ""})
	for spec, want := range map[string]string{
		"hopeful": "something that it depends on", "missing": "no such package", "@scope/server@7": "no such package", "library": "it is a library", "two": "npx -y -p two PROGRAM",
	} {
		s := New(Options{Folder: t.TempDir()})
		_, err := s.Ensure(t.Context(), request(t, start(t, from, spec)), quiet)
		if err == nil || !strings.Contains(fault.HintOf(err), want) || MayWorkByNPX(err) {
			t.Errorf("%s: %v, hint %q", spec, err, fault.HintOf(err))
		}
		if left := append(entries(t, s, "tmp"), entries(t, s, "npm")...); len(left) > 0 {
			t.Errorf("%s left %q", spec, left)
		}
	}
}

func TestInterruptedInstallationLeavesNothing(t *testing.T) {
	t.Parallel()
	from := published(t)
	s, r := New(Options{Folder: t.TempDir()}), request(t, start(t, from, "@scope/server"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the server was shut down")
	from.Hold(func(path string) {
		if strings.HasSuffix(path, ".tgz") {
			cancel(stopped)
		}
	})
	if _, err := s.Ensure(ctx, r, quiet); !errors.Is(err, stopped) {
		t.Errorf("err = %v", err)
	}
	if left := append(entries(t, s, "tmp"), entries(t, s, "npm")...); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
	from.Hold(func(string) {})
	if _, err := s.Ensure(t.Context(), r, quiet); err != nil {
		t.Errorf("the next installation: %v", err)
	}
}
