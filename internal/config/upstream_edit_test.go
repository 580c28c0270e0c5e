package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

func TestUpstreamsAreAddedAndRemovedInPlace(t *testing.T) {
	t.Parallel()
	const original = "# my server\nlisten = \"127.0.0.1:1\"\n\n[upstreams.old]\nurl = \"http://127.0.0.1:2\" # keep\n"
	sources := Sources{File: configtest.WriteFile(t, original)}
	entry := Upstream{Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"TOKEN": "x"}, Expose: upstream.Expose{upstream.ExposeAll}}
	if _, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "files", Entry: entry}); err != nil {
		t.Fatal(err)
	}
	if _, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "docs", Entry: Upstream{URL: "https://example.org/mcp", Headers: map[string]string{"A": "b"}}}); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Upstreams["files"]; got.Command != "npx" || len(got.Args) != 2 || got.Env["TOKEN"] != "x" || !slices.Contains(got.Expose, upstream.ExposeAll) {
		t.Errorf("files = %+v", got)
	}
	if _, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "files", Entry: entry}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("adding twice: %v", err)
	}
	if _, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "no name", Entry: entry}); err == nil {
		t.Error("a bad name was written")
	}
	if _, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "files", Entry: Upstream{Command: "node"}, Replace: true}); err != nil {
		t.Fatal(err)
	}
	if loaded, err := Load(sources); err != nil || loaded.Upstreams["files"].Command != "node" || len(loaded.Upstreams["files"].Env) > 0 || len(loaded.Upstreams) != 3 {
		t.Errorf("after replacing: %v", err)
	}
	for _, name := range []string{"docs", "files"} {
		if _, err := RemoveUpstream(sources, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := RemoveUpstream(sources, "files"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("removing twice: %v", err)
	}
	text, err := os.ReadFile(sources.File)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != original {
		t.Errorf("the file became\n%s\nwant\n%s", text, original)
	}
}

func TestANamedFileIsMade(t *testing.T) {
	t.Parallel()
	sources := Sources{File: filepath.Join(t.TempDir(), "new", "luanette.toml")}
	entry := Upstream{URL: "http://127.0.0.1:2", Expose: []string{"a", "b"}}
	if file, err := AddUpstream(t.Context(), sources, NewUpstream{Name: "docs", Entry: entry}); err != nil || file != sources.File {
		t.Fatalf("%s: %v", file, err)
	}
	loaded, err := Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := loaded.UpstreamSpecs(nil)
	if err != nil || len(specs) != 1 || strings.Join(specs[0].Expose, " ") != "a b" {
		t.Errorf("specs = %v, %v", specs, err)
	}
}

func TestRemoveRefusesATableWithoutAHeader(t *testing.T) {
	t.Parallel()
	sources := Sources{File: configtest.WriteFile(t, "upstreams = { a = { url = \"http://127.0.0.1:2\" } }\n")}
	if _, err := RemoveUpstream(sources, "a"); err == nil || !strings.Contains(fault.HintOf(err), "by hand") {
		t.Errorf("err = %v", err)
	}
}
