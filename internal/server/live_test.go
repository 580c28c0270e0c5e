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

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/hootenanny"
)

// Every setting that is changed while the server runs either takes effect at once
// or is said to wait for a restart: in the log, in /health and in the event.
func TestEverySettingTakesEffectOrWaitsForARestart(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{})
	config.TuneCollector(srv.config.GCPercent, nil) // as the program does
	extra := filepath.Join(t.TempDir(), "extra.json")
	if err := os.WriteFile(extra, []byte(`{"mcpServers":{"imported":{"url":"http://127.0.0.1:1/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	other := map[string]any{
		"log.level": "error", "mcp.mode": "code", "mcp.code_threshold": -1, "hoot.expose": []string{"all"}, "mcp.import": []string{extra}, "mcp.pinned": []string{"lua_eval"},
		"approve": "all", "trust": "pin", "approvals": map[string]string{"x": "all"}, "upstreams": map[string]config.Upstream{"new": {URL: "http://127.0.0.1:1/mcp"}},
	}
	for i, k := range config.Entries(&srv.config.Config) {
		before := liveState(t, srv)
		fresh := *srv.config
		knob := config.Entries(&fresh.Config)[i]
		changeValue(t, knob.Value, other[k.Key])
		heard := srv.bus.Subscribe(event.Options{Types: []string{"config.update"}})
		applyConfig(t, srv, &fresh)
		took := liveState(t, srv) != before
		waits := slices.Contains(srv.restartNeeded(), k.Key)
		if took == waits || took != k.Live {
			t.Errorf("%s: tagged live %v, took effect %v, waits for a restart %v", k.Key, k.Live, took, waits)
		}
		if e, ok := heard.Poll(); !ok || e.Data.(config.Updated).Restart != waits || !strings.HasPrefix(e.Data.(config.Updated).Key, k.Key) {
			t.Errorf("%s: told %+v", k.Key, e)
		}
		heard.Close()
		applyConfig(t, srv, srv.config) // back
		if now := liveState(t, srv); now != before || len(srv.restartNeeded()) > 0 {
			t.Fatalf("%s is not taken back: %v\n%s\n%s", k.Key, srv.restartNeeded(), before, now)
		}
	}
}

// So does every setting of an upstream: at once, all of them.
func TestEverySettingOfAnUpstreamTakesEffect(t *testing.T) {
	t.Parallel()
	_, srv := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.one]\nurl = \"http://127.0.0.1:1/mcp\"\n")})
	other := map[string]any{
		"url": "http://127.0.0.1:2/mcp", "transport": "sse", "protocol": "legacy", "start": "lazy", "expose": "all", "approve": "all", "trust": "pin",
		"env": map[string]string{"A": "b"}, "enabled": new(bool), "oauth": &config.UpstreamOAuth{ClientID: "me"},
	}
	kind := reflect.TypeFor[config.Upstream]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("toml"), ",")
		fresh := *srv.config
		one := fresh.Upstreams["one"]
		if slices.Contains([]string{"command", "args", "env", "env_file", "cwd"}, name) { // of programs
			one.URL, one.Command = "", "true"
		}
		fresh.Upstreams = map[string]config.Upstream{"one": one}
		applyConfig(t, srv, &fresh)
		before := liveState(t, srv)
		changeValue(t, reflect.ValueOf(&one).Elem().Field(i), other[name])
		fresh.Upstreams = map[string]config.Upstream{"one": one}
		applyConfig(t, srv, &fresh)
		if liveState(t, srv) == before {
			t.Errorf("upstreams.one.%s: changed, and nothing is another", name)
		}
	}
}

// applyConfig has a srv go by a configuration.
func applyConfig(t *testing.T, srv *Server, config *config.Loaded) {
	t.Helper()
	srv.reloads.Lock()
	defer srv.reloads.Unlock()
	if err := srv.apply(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// changeValue gives a field the value, or any other than it has.
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
	case reflect.Struct: // one of a table: that it is there is enough
	default:
		t.Fatalf("no other value for a %s", field.Type())
	}
}

// liveState is what the parts of a server use of the settings that can change while it runs.
func liveState(t *testing.T, h *Server) string {
	t.Helper()
	specs, rules := h.upstreams.Configured()
	shown, err := h.menu.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	collector := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(collector)
	modes := []any{}
	for _, name := range []string{"one", "new", "x"} {
		modes = append(modes, h.pins.ModeOf(name), h.limits(name))
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		modes = append(modes, fmt.Sprintf("%#v", specs[name]))
	}
	return fmt.Sprint(rules, *h.policy.Settings(), h.approvals.Policy(), modes, len(shown), h.log.Enabled(t.Context(), slog.LevelInfo),
		h.catalog.Exposed().Pinned("lua_eval"), collector[0].Value.Uint64(), h.catalog.Shows(t.Context(), tool.Ref{Space: hootenanny.Space}))
}

// What a variable or a flag says holds whatever is written into the file, and limits
// of an upstream in it are heeded by the next call.
func TestAReloadAppliesVariablesFlagsAndLimits(t *testing.T) {
	t.Parallel()
	other, _ := start(t, config.Sources{})
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
		t.Errorf("the file won over the environment: %+v, %+v", p, srv.policy.Settings())
	}
	if first, second := call(), call(); first != nil || fault.CodeOf(second) != fault.Limit {
		t.Errorf("with one call a minute: %v, %v", first, second)
	}
	if got := srv.restartNeeded(); !slices.Equal(got, []string{"jobs.workers"}) { // listen is a flag's
		t.Errorf("restart needed for %v", got)
	}
	var shown strings.Builder
	if err := srv.current().Show(&shown); err != nil || !strings.Contains(shown.String(), "# restart needed for: jobs.workers\n") || !strings.Contains(shown.String(), "RESTART NEEDED for 3\n") {
		t.Errorf("%v, %s", err, shown.String())
	}
}
