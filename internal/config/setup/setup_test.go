package setup_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/setup"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/registry"
	"github.com/luanette/luanette/internal/mcp/registry/registrytest"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// fixture is a service with a configuration of its own.
type fixture struct {
	t       *testing.T
	server  http.Handler
	service *setup.Service
	home    string
	reloads atomic.Int32
}

func open(t *testing.T, programs bool) *fixture {
	t.Helper()
	f := &fixture{t: t, home: t.TempDir()}
	listed := registrytest.New(
		registrytest.Entry{Server: `{"name":"io.github.acme/weather","description":"Weather.","version":"1.0.0","packages":[{"registryType":"npm","identifier":"@acme/weather","version":"1.0.0","transport":{"type":"stdio"},"environmentVariables":[{"name":"API_KEY","isRequired":true,"isSecret":true}]}]}`},
		registrytest.Entry{Server: `{"name":"io.github.acme/weather-web","description":"Weather far away.","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://weather.example/mcp"}]}`},
	)
	t.Cleanup(listed.Close)
	f.service = setup.New(setup.Options{
		Sources:  config.Sources{Env: config.Environment{"HOME": f.home}, File: filepath.Join(f.home, "luanette.toml")},
		System:   clientfile.System{OS: "linux", Home: f.home, Dir: f.home, Getenv: func(string) string { return "" }},
		Registry: registry.Client{URL: listed.URL, HTTP: httpjsontest.Client},
		Address:  func() string { return "http://localhost:8081" },
		Programs: programs,
		Reload:   func(context.Context) { f.reloads.Add(1) },
		Audit:    func(context.Context, string, string, []byte) {},
	})
	f.server = principal.Unguarded(f.service.Routes())
	return f
}

// send sends a request as our page does, and returns the decoded answer.
func (f *fixture) send(status int, method, path, body string) map[string]any {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), method, "http://localhost:8081"+path, strings.NewReader(body))
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://localhost:8081")
	}
	return f.answer(r, status)
}

func (f *fixture) answer(r *http.Request, status int) map[string]any {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	answer := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != status {
		f.t.Fatalf("%s %s: %d %s, want %d", r.Method, r.URL, w.Code, w.Body, status)
	}
	return answer
}

// upstream is a server of the file.
func (f *fixture) upstream(name string) (u config.Upstream, there bool) {
	f.t.Helper()
	loaded, err := config.LoadOrNew(f.service.Sources)
	if err != nil {
		f.t.Fatal(err)
	}
	u, there = loaded.Upstreams[name]
	return u, there
}

func TestCommandsAreAddedRemovedAndRestored(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	f.send(http.StatusOK, "POST", "/api/v1/setup/servers", `{"namespace":"files","command":"npx -y 'a b' \"c \\\"d\" e\\ f","env":{"A":"b"}}`)
	u, _ := f.upstream("files")
	if got := strings.Join(u.Args, "|"); u.Command != "npx" || got != `-y|a b|c "d|e f` || u.Env["A"] != "b" || f.reloads.Load() != 1 {
		t.Errorf("added %+v with %q, %d reloads", u, got, f.reloads.Load())
	}
	for _, command := range []string{"", "  ", "'open", `npx "a`, "''"} {
		body, _ := json.Marshal(map[string]string{"namespace": "x", "command": command})
		f.send(http.StatusBadRequest, "POST", "/api/v1/setup/servers", string(body))
	}
	f.send(http.StatusConflict, "POST", "/api/v1/setup/servers", `{"namespace":"files","command":"other"}`)
	f.send(http.StatusOK, "DELETE", "/api/v1/setup/servers/files", "")
	if _, there := f.upstream("files"); there {
		t.Error("it is still there")
	}
	f.send(http.StatusNotFound, "DELETE", "/api/v1/setup/servers/files", "")
	f.send(http.StatusOK, "POST", "/api/v1/setup/servers/files/restore", "")
	if again, _ := f.upstream("files"); again.Command != "npx" || again.Env["A"] != "b" {
		t.Errorf("restored %+v", again)
	}
	f.send(http.StatusNotFound, "POST", "/api/v1/setup/servers/files/restore", "")
	if err := f.service.SetTools(t.Context(), "files", upstreamset.ToolSettings{Disabled: []string{"rm"}}); err != nil {
		t.Fatal(err)
	}
	if u, _ := f.upstream("files"); len(u.DisabledTools) != 1 {
		t.Errorf("tools of %+v", u)
	}
}

// TestServersAreEdited checks that settings are changed where they are, that secrets are
// neither shown nor lost, and that errors name their field.
func TestServersAreEdited(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	const path = "/api/v1/setup/servers/files"
	before := "# mine\n[upstreams.files]\ncommand = \"npx\" # the runner\nargs = [\"-y\", \"a b\"]\nsandbox = \"open\"\n\n[upstreams.files.env]\n# from the portal\nKEY = \"hunter2\"\nOLD = \"1\"\n"
	if err := os.WriteFile(f.service.Sources.File, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := f.send(http.StatusOK, "GET", path, "")
	env := shown["settings"].(map[string]any)["env"].(map[string]any)
	if value, there := env["KEY"]; !there || value != nil || shown["command"] != `npx -y "a b"` || !strings.HasSuffix(shown["place"].(string), "luanette.toml:2") {
		t.Errorf("shown: %v", shown)
	}
	f.send(http.StatusOK, "PATCH", path, `{"command":"uvx tool 'c d'","settings":{"sandbox":"strict","network":["api.example:443"],"env":{"KEY":null,"NEW":"x"}}}`)
	text, err := os.ReadFile(f.service.Sources.File)
	want := "# mine\n[upstreams.files]\nnetwork = [\"api.example:443\"]\ncommand = \"uvx\" # the runner\nargs = [\"tool\", \"c d\"]\nsandbox = \"strict\"\n\n[upstreams.files.env]\nNEW = \"x\"\n# from the portal\nKEY = \"hunter2\"\n"
	if err != nil || string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s%v", text, want, err)
	}
	for body, field := range map[string]string{
		`{"command":"'open"}`:                     "command",
		`{"settings":{"sandbox":"closed"}}`:       "sandbox",
		`{"settings":{"timeout":"soon"}}`:         "timeout",
		`{"settings":{"env":{"MISSING":null}}}`:   "env",
		`{"settings":{"colour":"red"}}`:           "colour",
		`{"settings":{"url":"http://localhost"}}`: "url",
		`{"command":"npx --key [redacted]"}`:      "args",
	} {
		answer := f.send(http.StatusBadRequest, "PATCH", path, body)
		if raw, _ := json.Marshal(answer); !strings.Contains(string(raw), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", body, raw)
		}
	}
	if after, _ := os.ReadFile(f.service.Sources.File); string(after) != want || f.reloads.Load() != 1 {
		t.Errorf("%d reloads, the file is\n%s", f.reloads.Load(), after)
	}
	f.send(http.StatusConflict, "PATCH", "/api/v1/setup/servers/other", `{"command":"x"}`)
	f.send(http.StatusNotFound, "GET", "/api/v1/setup/servers/other", "")
}

func TestAPIsAreAdded(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	f.send(http.StatusOK, "POST", "/api/v1/setup/servers", `{"namespace":"pets","settings":{"openapi":"https://pets.example/openapi.json","headers":{"X-Key":"k"},"read_only":true}}`)
	if u, _ := f.upstream("pets"); u.OpenAPI != "https://pets.example/openapi.json" || u.Headers["X-Key"] != "k" || !u.ReadOnly {
		t.Errorf("added %+v", u)
	}
	f.send(http.StatusBadRequest, "POST", "/api/v1/setup/servers", `{"namespace":"none","settings":{"read_only":true}}`)
	f.send(http.StatusBadRequest, "POST", "/api/v1/setup/servers", `{"namespace":"none"}`)
}

// TestOnlyThisPageAddsPrograms checks that other pages, other programs and servers that
// other machines reach are refused.
func TestOnlyThisPageAddsPrograms(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	for _, origin := range []string{"", "http://localhost:3000", "https://evil.example"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost:8081/api/v1/setup/servers", strings.NewReader(`{"namespace":"x","command":"sh"}`))
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		f.answer(r, http.StatusForbidden)
	}
	f = open(t, false)
	for _, request := range []struct{ method, path, body string }{
		{"POST", "/api/v1/setup/servers", `{"namespace":"x","command":"sh"}`},
		{"POST", "/api/v1/setup/import", `{"text":"{\"mcpServers\":{\"x\":{\"command\":\"sh\"}}}"}`},
		{"POST", "/api/v1/setup/registry", `{"name":"io.github.acme/weather","values":{"env":{"API_KEY":"k"}}}`},
		{"GET", "/api/v1/setup/import", ""},
	} {
		f.send(http.StatusForbidden, request.method, request.path, request.body)
	}
	f.send(http.StatusOK, "POST", "/api/v1/setup/registry", `{"name":"io.github.acme/weather-web"}`) // a URL is no program
	if u, _ := f.upstream("weather-web"); u.URL != "https://weather.example/mcp" {
		t.Errorf("added %+v", u)
	}
	if shown := f.send(http.StatusOK, "GET", "/api/v1/setup", ""); shown["programs"] != false {
		t.Errorf("shown %v", shown["programs"])
	}
}

func TestServersOfTheRegistryAreAdded(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	found, _ := f.send(http.StatusOK, "GET", "/api/v1/setup/registry?words=weather", "")["servers"].([]any)
	if len(found) != 2 {
		t.Fatalf("found %v", found)
	}
	first, _ := found[slices.IndexFunc(found, func(l any) bool { return l.(map[string]any)["program"] == true })].(map[string]any)
	if needs, _ := first["needs"].([]any); first["runs"] != "npx -y @acme/weather@1.0.0" || first["namespace"] != "weather" || len(needs) != 1 {
		t.Errorf("found %v", first)
	}
	f.send(http.StatusBadRequest, "POST", "/api/v1/setup/registry", `{"name":"io.github.acme/weather"}`) // the key is missing
	f.send(http.StatusOK, "POST", "/api/v1/setup/registry", `{"name":"io.github.acme/weather","namespace":"sky","values":{"env":{"API_KEY":"s3cret"}}}`)
	u, _ := f.upstream("sky")
	if u.Command != "npx" || strings.Contains(u.Env["API_KEY"], "s3cret") {
		t.Errorf("added %+v", u)
	}
	stored, err := os.ReadFile(filepath.Join(f.home, "secrets", "sky-API_KEY"))
	if err != nil || strings.TrimSpace(string(stored)) != "s3cret" {
		t.Errorf("stored %q, %v", stored, err)
	}
	f.send(http.StatusNotFound, "POST", "/api/v1/setup/registry", `{"name":"io.github.acme/none"}`)
}

func TestServersOfClientsAreImported(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	if err := os.MkdirAll(filepath.Join(f.home, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home, ".cursor", "mcp.json"), []byte(`{"mcpServers":{"notes":{"command":"notes-server"},"spare":{"command":"spare"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	found, _ := f.send(http.StatusOK, "GET", "/api/v1/setup/import", "")["servers"].([]any)
	if len(found) != 2 {
		t.Fatalf("found %v", found)
	}
	f.send(http.StatusOK, "POST", "/api/v1/setup/import", `{"names":["notes"]}`)
	if u, _ := f.upstream("notes"); u.Command != "notes-server" {
		t.Errorf("imported %+v", u)
	}
	if _, there := f.upstream("spare"); there {
		t.Error("spare was imported too")
	}
	answer := f.send(http.StatusNotFound, "POST", "/api/v1/setup/import", `{"names":["notes"]}`)
	if hint, _ := answer["hint"].(string); !strings.Contains(hint, "already") {
		t.Errorf("again: %v", answer)
	}
	f.send(http.StatusOK, "POST", "/api/v1/setup/import", `{"text":"{\"mcpServers\":{\"pasted\":{\"command\":\"p\",\"args\":[\"-x\"]}}}"}`)
	if u, _ := f.upstream("pasted"); u.Command != "p" || len(u.Args) != 1 {
		t.Errorf("pasted %+v", u)
	}
	f.send(http.StatusBadRequest, "POST", "/api/v1/setup/import", `{"text":"{"}`)
}

// TestClientsAreTold checks that every client has a command, and most a snippet with our
// address.
func TestClientsAreTold(t *testing.T) {
	t.Parallel()
	f := open(t, true)
	clients, _ := f.send(http.StatusOK, "GET", "/api/v1/setup", "")["clients"].([]any)
	if len(clients) != len(clientfile.Clients) {
		t.Fatalf("%d clients", len(clients))
	}
	for _, c := range clients {
		client, _ := c.(map[string]any)
		snippet, _ := client["snippet"].(string)
		if client["install"] == "" || client["file"] != nil && !strings.Contains(snippet, "http://localhost:8081/mcp") && !strings.Contains(snippet, "stdio") {
			t.Errorf("%v", client)
		}
	}
}
