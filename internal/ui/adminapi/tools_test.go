package adminapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// twoTools are the tools of the servers files and fixed, and one of our own. What removes says so
// at fixed.
type twoTools struct{}

func (twoTools) Tools(context.Context) ([]tool.Info, error) {
	list := []tool.Info{{Ref: tool.Ref{Name: "own"}, Description: "Ours."}}
	for _, space := range []string{"files", "fixed"} {
		for _, name := range []string{"list", "remove"} {
			raw := json.RawMessage(`{}`)
			if space == "fixed" && name == "remove" {
				raw = json.RawMessage(`{"annotations":{"destructiveHint":true}}`)
			}
			list = append(list, tool.Info{Raw: raw, Ref: tool.Ref{Space: space, Name: name}, Description: "Does it.\n\nAt length.", Input: []byte(`{"type":"object"}`), Hints: tool.Hints{ReadOnly: name == "list"}})
		}
	}
	return list, nil
}

func (twoTools) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// toolServer serves tools of files, which a user added, and of fixed, which the
// configuration has. Changes of the latter are sent to the channel.
func toolServer(t *testing.T) (s *adminapi.Server, configured chan upstreamset.ToolSettings) {
	t.Helper()
	bus := event.New(event.BusOptions{})
	manager := upstream.New(upstream.Options{Events: bus})
	t.Cleanup(manager.Close)
	store, err := upstreamstore.Open(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), secret.Box{Key: func() (secret.Text, error) { return secret.New("a key with more than 16 bytes"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	rules := overlay.New(twoTools{}, twoTools{})
	tools := catalog.New(catalog.Options{Sources: []tool.Source{rules}})
	set, err := upstreamset.New(t.Context(), upstreamset.Options{
		Manager: manager, Overlay: rules, Catalog: tools, Store: store, Events: bus, Log: slog.New(slog.DiscardHandler), Persistent: true,
		Address: func() string { return "" }, Audit: func(context.Context, string, string, []byte) {}, Warnings: func(string) []string { return nil },
	})
	if err == nil {
		err = set.Configure([]upstream.Spec{{Name: "fixed", Settings: upstream.Settings{URL: "http://127.0.0.1:1/mcp", Expose: []string{upstream.ExposeAll}}}}, nil, nil)
	}
	if err == nil {
		err = set.AddServer(t.Context(), "files", upstream.Settings{URL: "http://127.0.0.1:1/mcp"})
	}
	if err != nil {
		t.Fatal(err)
	}
	configured = make(chan upstreamset.ToolSettings, 1)
	return adminapi.New(adminapi.Options{Tools: adminapi.Tools{Catalog: tools, Set: set, Configure: func(_ context.Context, _ string, s upstreamset.ToolSettings) error {
		configured <- s
		return nil
	}}}), configured
}

func TestToolsAreListedByServer(t *testing.T) {
	t.Parallel()
	s, _ := toolServer(t)
	all := expect(t, s, http.StatusOK, "GET", "/api/v1/tools", "")
	servers, _ := all["servers"].([]any)
	if len(servers) != 3 || all["total"] != 5.0 || all["tokens"] == 0.0 || all["tools"] != nil {
		t.Fatalf("all: %v", all)
	}
	one := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?server=fixed", "")
	list, _ := one["tools"].([]any)
	first, _ := list[0].(map[string]any)
	if len(list) != 2 || first["name"] != "fixed.list" || first["description"] != "Does it." || first["read_only"] != true || first["exposed"] != true || first["tokens"] == 0.0 {
		t.Errorf("one: %v", one)
	}
	own := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?server=luanette", "")
	if list, _ := own["tools"].([]any); len(list) != 1 {
		t.Errorf("own: %v", own)
	}
	expect(t, s, http.StatusNotFound, "GET", "/api/v1/tools?server=other", "")
	if named := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?name=fixed.list", ""); named["name"] != "fixed.list" || named["exposed"] != true || named["tokens"] != first["tokens"] {
		t.Errorf("named: %v", named)
	}
	if named := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?name=own", ""); named["name"] != "own" {
		t.Errorf("named: %v", named)
	}
	expect(t, s, http.StatusNotFound, "GET", "/api/v1/tools?name=fixed.other", "")
}

// TestToolsSayWhatTheirServersSay checks that a tool whose server says nothing is not shown as one
// that deletes.
func TestToolsSayWhatTheirServersSay(t *testing.T) {
	t.Parallel()
	s, _ := toolServer(t)
	for name, want := range map[string][3]any{"fixed.list": {true, nil, nil}, "fixed.remove": {nil, true, nil}, "files.remove": {nil, nil, true}} {
		said := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?name="+name, "")
		if got := [3]any{said["read_only"], said["destructive"], said["unmarked"]}; got != want {
			t.Errorf("%s reads, deletes, does not say: %v", name, got)
		}
	}
}

func TestToolsAreChanged(t *testing.T) {
	t.Parallel()
	s, configured := toolServer(t)
	change := func(name, body string) object {
		t.Helper()
		return expect(t, s, http.StatusOK, "PATCH", "/api/v1/tools/"+name, body)
	}
	if got := change("files.list", `{"alias":"ls"}`); got["name"] != "files.ls" || got["alias"] != "ls" {
		t.Errorf("renamed: %v", got)
	}
	if got := change("files.ls", `{"exposed":true}`); got["name"] != "files.ls" || got["exposed"] != true {
		t.Errorf("exposed: %v", got)
	}
	if got := change("files.ls", `{"alias":""}`); got["name"] != "files.list" || got["exposed"] != true {
		t.Errorf("renamed back: %v", got)
	}
	if got := change("files.remove", `{"disabled":true}`); got["disabled"] != true {
		t.Errorf("disabled: %v", got)
	}
	group, _ := expect(t, s, http.StatusOK, "GET", "/api/v1/tools?server=files", "")["servers"].([]any)[0].(map[string]any)
	if disabled, _ := group["disabled"].([]any); len(disabled) != 1 || disabled[0] != "remove" {
		t.Errorf("group: %v", group)
	}
	change("fixed.remove", `{"exposed":false}`) // all others stay exposed
	if got := <-configured; len(got.Expose) != 1 || got.Expose[0] != "list" {
		t.Errorf("configured: %+v", got)
	}
	expect(t, s, http.StatusConflict, "PATCH", "/api/v1/tools/own", `{"disabled":true}`)
	expect(t, s, http.StatusNotFound, "PATCH", "/api/v1/tools/files.other", `{"disabled":true}`)
	expect(t, s, http.StatusConflict, "PATCH", "/api/v1/tools/files.list", `{"alias":"not a name"}`)
	if status, _ := request(t, s, reader(), "PATCH", "/api/v1/tools/files.list", `{"disabled":true}`); status != http.StatusForbidden {
		t.Errorf("a reader changed it: %d", status)
	}
}
