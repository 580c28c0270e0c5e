package server

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/faultinject"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/music/hootenanny"
)

// TestEverySettingTakesEffectOrNeedsARestart changes every setting of a running server. It
// must either take effect at once or be reported as needing a restart.
func TestEverySettingTakesEffectOrNeedsARestart(t *testing.T) {
	t.Parallel()
	scripts := t.TempDir()
	if err := os.WriteFile(filepath.Join(scripts, "hello.lua"), []byte("function describe() return { name = 'hello', description = 'Says hello' } end\nfunction main() return 'hello' end"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, srv := start(t, config.Sources{File: configtest.WriteFile(t, fmt.Sprintf(`
		[music]
		enabled = true
		[scripts]
		folder = %q
		[upstreams.uses]
		command = "true"
		start = "lazy"
		env = { TOKEN = "secret:token" }
		[secrets.token]
		value = "${env:TOKEN}"
		hosts = ["a.example"]
		`, scripts))})
	srv.config.TuneCollector(nil) // as the program does
	extra := filepath.Join(t.TempDir(), "extra.json")
	if err := os.WriteFile(extra, []byte(`{"mcpServers":{"imported":{"url":"http://127.0.0.1:1/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	other := map[string]any{
		"log.level": "error", "starts.install": "off", "mcp.menu": "full", "mcp.list_scripts": 0, "mcp.list_apps": 0, "music.expose": []string{"all"}, "mcp.import": []string{extra}, "mcp.pinned": []string{"lua_eval"},
		"approve": "all", "trust": "pin", "approvals": map[string]string{"x": "all"}, "upstreams": map[string]config.Upstream{"new": {URL: "http://127.0.0.1:1/mcp"}},
		"tools":   map[string]config.Tool{"x": {Command: []any{"true"}}},
		"hooks":   map[string]config.Hook{"x": {Script: "hello", Secret: "${env:HOOK}"}},
		"orgs":    map[string]config.Org{"acme": {Quota: config.OrgQuota{CPU: 5}}},
		"secrets": map[string]config.Secret{"token": {Value: "${env:TOKEN}", Hosts: []string{"b.example"}}},
	}
	chosen, choose := srv.config.Chat, srv.useModel // chosen is what the chat's model was made of
	srv.useModel = func() { choose(); chosen = srv.current().Chat }
	state := func() string {
		return fmt.Sprint(liveState(t, srv), chosen.Provider, chosen.Model, chosen.Models, chosen.BaseURL, chosen.KeyEnv, chosen.Key)
	}
	for i, k := range config.Entries(&srv.config.Config) {
		before := state()
		fresh := *srv.config
		changeValue(t, config.Entries(&fresh.Config)[i].Value, other[k.Key])
		updates := srv.bus.Subscribe(event.Options{Types: []string{"config.update"}})
		applyConfig(t, srv, &fresh)
		effective := state() != before
		waits := slices.Contains(srv.restartNeeded(), k.Key)
		if effective == waits || effective != k.Live {
			t.Errorf("%s: tagged live %v, took effect %v, needs a restart %v", k.Key, k.Live, effective, waits)
		}
		if e, ok := updates.Poll(); !ok || e.Data.(config.Updated).Restart != waits || !strings.HasPrefix(e.Data.(config.Updated).Key, k.Key) {
			t.Errorf("%s: event %+v", k.Key, e)
		}
		updates.Close()
		applyConfig(t, srv, srv.config)
		if now := state(); now != before || len(srv.restartNeeded()) > 0 {
			t.Fatalf("%s was not restored: %v\n%s\n%s", k.Key, srv.restartNeeded(), before, now)
		}
	}
}

// TestEverySettingOfAnUpstreamTakesEffect checks that all settings of upstreams are live.
func TestEverySettingOfAnUpstreamTakesEffect(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.one]\nurl = \"http://127.0.0.1:1/mcp\"\n")})
	other := map[string]any{
		"url": "http://127.0.0.1:2/mcp", "graphql": "http://127.0.0.1:2/graphql", "grpc": "127.0.0.1:2", "transport": "sse", "protocol": "legacy", "start": "lazy", "expose": upstream.Expose{"*"}, "approve": "all", "trust": "pin",
		"env": map[string]string{"A": "b"}, "enabled": new(bool), "oauth": upstream.OAuth{ClientID: "me"},
		"curve": upstream.Curve{Server: "a key"}, "faults": faultinject.Faults{Fail: .5},
		"api": api.Settings{BaseURL: "http://127.0.0.1:1"}, "sandbox": "open", "network": []string{"a.example:443"}, "require": new(true),
		"login": "each", "install": "off",
	}
	kind := reflect.TypeFor[config.Upstream]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("toml"), ",")
		if name == "org" { // part of the upstream's name as soon as the file is read
			continue
		}
		fresh := *srv.config
		one := fresh.Upstreams["one"]
		if slices.Contains([]string{"command", "args", "env", "env_file", "cwd"}, name) { // only of programs
			one.URL, one.Command = "", "true"
		}
		switch name {
		case "curve": // only of backends
			one.URL = "zmq+tcp://127.0.0.1:1"
		case "openapi", "api": // only of APIs
			one.URL, one.OpenAPI = "", "document.json"
		case "graphql":
			one.URL, one.GraphQL = "", "http://127.0.0.1:1/graphql"
		case "grpc":
			one.URL, one.GRPC = "", "127.0.0.1:1"
		case "sandbox", "read", "write", "network", "require", "exec", "sockets", "memory_mb", "processes", "open_files", "cpu_time", "cpus", "disk_mb": // only of programs
			one.URL, one.Command, one.Sandbox = "", "true", "strict"
		}
		fresh.Upstreams = map[string]config.Upstream{"one": one}
		applyConfig(t, srv, &fresh)
		before := liveState(t, srv)
		changeValue(t, reflect.ValueOf(&one).Elem().Field(i), other[name])
		fresh.Upstreams = map[string]config.Upstream{"one": one}
		applyConfig(t, srv, &fresh)
		if liveState(t, srv) == before {
			t.Errorf("upstreams.one.%s: a change has no effect", name)
		}
	}
}

// applyConfig applies a configuration to a running server.
func applyConfig(t *testing.T, srv *Server, config *config.Loaded) {
	t.Helper()
	srv.reloads.Lock()
	defer srv.reloads.Unlock()
	if err := srv.apply(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// changeValue sets a field to value, or to any other value if that is nil.
func changeValue(t *testing.T, field reflect.Value, value any) {
	t.Helper()
	if value != nil {
		field.Set(reflect.ValueOf(value))
		return
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 7)
	case reflect.Float64:
		field.SetFloat(field.Float() + 1)
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Slice:
		one := reflect.New(field.Type().Elem()).Elem()
		if one.Kind() == reflect.String {
			one.SetString("x")
		}
		field.Set(reflect.Append(reflect.MakeSlice(field.Type(), 0, 1), one))
	case reflect.Map:
		fresh := reflect.MakeMap(field.Type())
		one := reflect.New(field.Type().Elem()).Elem()
		changeValue(t, one, nil)
		fresh.SetMapIndex(reflect.ValueOf("x"), one)
		field.Set(fresh)
	case reflect.Struct: // a new entry of a table; its existence is the change
	default:
		t.Fatalf("no other value for a %s", field.Type())
	}
}

// liveState returns the values that the parts of a server use for the live settings.
func liveState(t *testing.T, srv *Server) string {
	t.Helper()
	specs, rules := srv.upstreams.Configured()
	shown, err := srv.menu.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	collector := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(collector)
	_, reverted := srv.revert(tool.Ref{Space: "one", Name: "x"})
	modes := []any{reverted}
	for _, name := range []string{"one", "new", "x"} {
		modes = append(modes, srv.pins.ModeOf(name), srv.limits(name, false))
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		modes = append(modes, fmt.Sprintf("%#v", specs[name]))
	}
	pages, err := srv.menu.Tools(tool.WithApps(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	quotas, err := srv.orgs.Usage(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(quotas.CPUSeconds.Limit, rules, *srv.policy.Settings(), srv.approvals.Policy(), modes, len(shown), len(pages), srv.log.Enabled(t.Context(), slog.LevelInfo),
		srv.catalog.Exposed().Pinned(t.Context(), "lua_eval"), collector[0].Value.Uint64(), srv.catalog.Shows(t.Context(), tool.Ref{Space: hootenanny.Space}),
		srv.current().Registry, srv.current().Hooks, srv.current().Sets, srv.program("one")) // commands and requests read them each time
}

// TestReload checks that variables and flags take precedence over a changed file, and that
// new limits of an upstream apply to the next call.
func TestReload(t *testing.T) {
	t.Parallel()
	other, _ := startShared(t)
	up := "[upstreams.up]\nurl = \"" + other + "/mcp\"\n"
	file := configtest.WriteFile(t, up)
	_, srv := start(t, config.Sources{File: file, Env: config.Environment{"LUANETTE_APPROVE": "writes"}, Flags: map[string]string{"read_only_tools": "up.*"}})
	srv.upstreams.Await(t.Context(), "up")
	call := func() error {
		_, err := srv.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "up", Name: "mcp_list_upstreams"}, Args: []byte(`{}`)})
		return err
	}
	for range 3 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	configtest.ReplaceFile(t, file, "approve = \"never\"\nread_only_tools = []\nlisten = \"127.0.0.1:9\"\njobs.workers = 3\n"+up+"rate = 1\n")
	srv.Reload(t.Context())
	if p := srv.approvals.Policy(); p.Default != "writes" || !slices.Equal(srv.policy.Settings().Readers, []string{"up.*"}) {
		t.Errorf("the file takes precedence over the environment: %+v, %+v", p, srv.policy.Settings())
	}
	if first, second := call(), call(); first != nil || fault.CodeOf(second) != fault.Limit {
		t.Errorf("with one call a minute: %v, %v", first, second)
	}
	if got := srv.restartNeeded(); !slices.Equal(got, []string{"jobs.workers"}) { // listen is set by a flag
		t.Errorf("restart needed for %v", got)
	}
	var shown strings.Builder
	if err := srv.current().Show(&shown); err != nil || !strings.Contains(shown.String(), "# restart needed for: jobs.workers\n") || !strings.Contains(shown.String(), "RESTART NEEDED for 3\n") {
		t.Errorf("%v, %s", err, shown.String())
	}
}
