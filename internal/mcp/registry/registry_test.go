package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/mcp/registry"
	"github.com/luanette/luanette/internal/mcp/registry/registrytest"
)

const weather = `{"name":"io.github.acme/weather","title":"Weather","description":"Forecasts for any place","version":"1.2.0",
	"packages":[{"registryType":"mcpb","identifier":"https://x/y.mcpb","transport":{"type":"stdio"}},
		{"registryType":"npm","identifier":"@acme/weather","version":"1.2.0","transport":{"type":"stdio"},
		"packageArguments":[{"type":"named","name":"--units","default":"si","choices":["si","us"]},{"type":"named","name":"--lang"},{"type":"positional","valueHint":"place","isRequired":true}],
		"environmentVariables":[{"name":"KEY","isRequired":true,"isSecret":true,"description":"API key"},{"name":"MODE","value":"fast"},{"name":"EXTRA"}]}],
	"remotes":[{"type":"streamable-http","url":"https://{region}.acme.test/mcp","variables":{"region":{"default":"eu"}},
		"headers":[{"name":"Authorization","value":"Bearer {token}","variables":{"token":{"isRequired":true,"isSecret":true}}}]}]}`

func start(t *testing.T, entries ...registrytest.Entry) registry.Client {
	t.Helper()
	s := registrytest.New(entries...)
	t.Cleanup(s.Close)
	return registry.Client{URL: s.URL, HTTP: httpjsontest.Client}
}

func TestSearchReadsAllPages(t *testing.T) {
	t.Parallel()
	entries := []registrytest.Entry{{Server: weather}}
	for i := range 230 {
		entries = append(entries, registrytest.Entry{Server: fmt.Sprintf(`{"name":"io.github.acme/tool%03d","description":"number %d","version":"1.0.0"}`, i, i)})
	}
	entries = append(entries,
		registrytest.Entry{Server: `{"name":"io.github.acme/tool000","description":"number 0 again","version":"1.1.0"}`, Status: "deprecated"},
		registrytest.Entry{Server: `{"name":"io.github.acme/gone","description":"number","version":"1.0.0"}`, Status: "deleted"})
	c := start(t, entries...)
	found, err := c.Search(t.Context(), []string{"acme"})
	if err != nil || len(found) != 231 {
		t.Errorf("%d found, %v", len(found), err)
	}
	found, err = c.Search(t.Context(), []string{"acme", "AGAIN"})
	if err != nil || len(found) != 1 || found[0].Server.Version != "1.1.0" || found[0].Status() != "deprecated" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err = c.Search(t.Context(), []string{"ab"}); fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(fault.HintOf(err), "3 letters") {
		t.Errorf("a short word: %v", err)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	c := start(t, registrytest.Entry{Server: strings.Replace(weather, `"1.2.0",`, `"1.1.0",`, 1)}, registrytest.Entry{Server: weather})
	for version, want := range map[string]string{"": "1.2.0", "1.1.0": "1.1.0"} {
		if l, err := c.Get(t.Context(), "io.github.acme/weather", version); err != nil || l.Server.Version != want {
			t.Errorf("version %q: %+v, %v", version, l, err)
		}
	}
	if _, err := c.Get(t.Context(), "io.github.acme/weather", "9"); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "of version 9") {
		t.Errorf("no such version: %v", err)
	}
	c.URL += "/elsewhere"
	if _, err := c.Search(t.Context(), []string{"weather"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("not a registry: %v", err)
	}
}

func launch(t *testing.T, remote bool, given map[string]map[string]string) registry.Launch {
	t.Helper()
	c := start(t, registrytest.Entry{Server: weather})
	found, err := c.Get(t.Context(), "io.github.acme/weather", "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := found.Server.Launch(remote, registry.Values{Given: given, Store: func(name, _ string) (string, error) { return "${file:" + name + "}", nil }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLaunchOfAPackage(t *testing.T) {
	t.Parallel()
	l := launch(t, false, nil)
	if len(l.Missing) != 2 || l.Missing[0].Flag() != "-e KEY=VALUE" || !l.Missing[0].Secret || l.Missing[1].Flag() != "--set place=VALUE" {
		t.Errorf("missing %+v", l.Missing)
	}
	l = launch(t, false, map[string]map[string]string{"env": {"KEY": "s3cret"}, "set": {"place": "Oslo", "units": "us"}})
	if got := l.Command + " " + strings.Join(l.Args, " "); got != "npx -y @acme/weather@1.2.0 --units us --lang Oslo" || len(l.Missing) != 0 {
		t.Errorf("%s, missing %v", got, l.Missing)
	}
	if l.Env["KEY"] != "${file:KEY}" || l.Env["MODE"] != "fast" || len(l.Env) != 2 {
		t.Errorf("env %v", l.Env)
	}
}

func TestLaunchOfARemote(t *testing.T) {
	t.Parallel()
	l := launch(t, true, map[string]map[string]string{"set": {"token": "s3cret"}})
	if l.URL != "https://eu.acme.test/mcp" || l.Transport != "http" || l.Headers["Authorization"] != "Bearer ${file:token}" {
		t.Errorf("launch %+v", l)
	}
	if l = launch(t, true, nil); len(l.Missing) != 1 || l.Missing[0].Name != "token" {
		t.Errorf("missing %+v", l.Missing)
	}
}

func TestLaunchOfOtherPackages(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"pypi":  "uvx x@1",
		"oci":   "docker run -i --rm -e A x",
		"nuget": "dnx x@1 --",
	} {
		s := registry.Server{Packages: []registry.Package{{RegistryType: kind, Identifier: "x", Version: "1"}}}
		s.Packages[0].EnvironmentVariables = []registry.Variable{{Name: "A", Input: registry.Input{Value: "b"}}}
		l, err := s.Launch(false, registry.Values{})
		if got := strings.Join(slices.Concat([]string{l.Command}, l.Args), " "); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", kind, got, err, want)
		}
	}
	_, err := registry.Server{Name: "a/b", Packages: []registry.Package{{RegistryType: "cargo"}}}.Launch(false, registry.Values{})
	if err == nil || !strings.Contains(err.Error(), "type cargo") {
		t.Errorf("cargo: %v", err)
	}
}
