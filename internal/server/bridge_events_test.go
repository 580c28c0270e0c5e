package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/script/publish"
	"github.com/luanette/luanette/internal/store/artifact"
)

// TestBridgeEvents checks that a front end on ZeroMQ receives events about replaced scripts
// and changed settings, without secrets.
func TestBridgeEvents(t *testing.T) {
	t.Parallel()
	endpoint := "ipc://" + filepath.Join(t.TempDir(), "bridge")
	settings := "[bridge]\nlisten = \"" + endpoint + "\"\n"
	file := configtest.WriteFile(t, settings)
	_, srv := start(t, config.Sources{File: file})
	_, front := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.back]\nurl = \"zmq+"+endpoint+"\"\n")})
	events := front.bus.Subscribe(event.Options{Types: []string{"script.invalidate", "config.update"}})
	defer events.Close()
	front.upstreams.Await(t.Context(), "back")

	first := publishScript(t, srv, `function describe() return {name="tune", description="one"} end function main() return 1 end`)
	publishScript(t, srv, `function describe() return {name="tune", description="two"} end function main() return 2 end`)
	e, err := events.Next(t.Context())
	if raw, _ := json.Marshal(e.Data); err != nil || e.Type != "script.invalidate" || !strings.Contains(string(raw), first) {
		t.Errorf("received %s %s, %v", e.Type, raw, err)
	}
	configtest.ReplaceFile(t, file, settings+"[upstreams.new]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"Bearer secret-token\" }\n")
	e, err = events.Next(t.Context())
	raw, _ := json.Marshal(e.Data)
	if err != nil || e.Type != "config.update" || !strings.Contains(string(raw), `"upstreams.new"`) || !strings.Contains(string(raw), "127.0.0.1:1/mcp") {
		t.Errorf("received %s %s, %v", e.Type, raw, err)
	}
	if strings.Contains(string(raw), "secret-token") {
		t.Error("a secret was broadcast")
	}
}

// publishScript publishes a script and returns its hash.
func publishScript(t *testing.T, srv *Server, source string) string {
	t.Helper()
	stored, _, err := srv.scripts.store.Put(t.Context(), strings.NewReader(source), artifact.Details{MIME: "text/x-lua"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.scripts.published.Publish(t.Context(), publish.Request{Hash: stored.Hash}); err != nil {
		t.Fatal(err)
	}
	return stored.Hash.String()
}
