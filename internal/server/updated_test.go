package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
)

// A front end hears over ZeroMQ that a script was replaced and that a setting
// changed, and no secret with it.
func TestFrontEndsHearOfScriptsAndSettings(t *testing.T) {
	t.Parallel()
	endpoint := "ipc://" + filepath.Join(t.TempDir(), "bridge")
	text := "[bridge]\nlisten = \"" + endpoint + "\"\n"
	file := configtest.WriteFile(t, text)
	_, srv := start(t, config.Sources{File: file})
	_, front := start(t, config.Sources{File: configtest.WriteFile(t, "[upstreams.back]\nurl = \"zmq+"+endpoint+"\"\n")})
	heard := front.bus.Subscribe(event.Options{Types: []string{"script.invalidate", "config.update"}})
	defer heard.Close()
	front.upstreams.Await(t.Context(), "back")

	first := publish(t, srv, `function describe() return {name="tune", description="one"} end function main() return 1 end`)
	publish(t, srv, `function describe() return {name="tune", description="two"} end function main() return 2 end`)
	e, err := heard.Next(t.Context())
	if raw, _ := json.Marshal(e.Data); err != nil || e.Type != "script.invalidate" || !strings.Contains(string(raw), first) {
		t.Errorf("heard %s %s, %v", e.Type, raw, err)
	}
	configtest.ReplaceFile(t, file, text+"[upstreams.new]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"Bearer hush-hush\" }\n")
	e, err = heard.Next(t.Context())
	raw, _ := json.Marshal(e.Data)
	if err != nil || e.Type != "config.update" || !strings.Contains(string(raw), `"upstreams.new"`) || !strings.Contains(string(raw), "127.0.0.1:1/mcp") {
		t.Errorf("heard %s %s, %v", e.Type, raw, err)
	}
	if strings.Contains(string(raw), "hush-hush") {
		t.Error("a secret was broadcast")
	}
}

// publish makes a script a tool and returns its hash.
func publish(t *testing.T, srv *Server, source string) string {
	t.Helper()
	kept, _, err := srv.scripts.store.Put(t.Context(), strings.NewReader(source), artifact.Details{MIME: "text/x-lua"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.scripts.published.Publish(t.Context(), script.PublishRequest{Hash: kept.Hash}); err != nil {
		t.Fatal(err)
	}
	return kept.Hash.String()
}
