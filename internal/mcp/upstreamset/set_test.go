package upstreamset_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// The configuration overrides what users add, and that overrides startup.lua.
func TestPrecedenceOfOrigins(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.must(f.AddLocal(t.Context(), upstream.Spec{Name: "a", Settings: upstream.Settings{URL: unreachable + "/startup"}}))
	f.want("a", "startup", unreachable+"/startup")
	f.must(f.add("a", unreachable+"/added"))
	f.want("a", "added", unreachable+"/added")
	f.configure(map[string]string{"a": unreachable + "/config"})
	if status := f.want("a", "config", unreachable+"/config"); !status.Fixed || status.Last.ConfiguredAt != "luanette.toml:7" {
		t.Errorf("status %+v", status)
	}
	f.configure(nil)
	f.want("a", "added", unreachable+"/added")
	if _, err := f.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	f.want("a", "startup", unreachable+"/startup")
	if got := f.List(); len(got) != 1 || got[0].State != upstreamset.StateRemoved || f.Has("a") {
		t.Errorf("after the removal: %+v", got)
	}
}

// An upstream of the configuration that a user removed is listed as removed until it is
// restored, added again, or changed in the configuration.
func TestRemovedUpstreamOfTheConfiguration(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	f.configure(map[string]string{"a": unreachable, "b": unreachable})
	remove := func() {
		t.Helper()
		if removed, err := f.Remove(t.Context(), "a"); !removed || err != nil {
			t.Fatalf("removed %v, %v", removed, err)
		}
		status := f.want("a", "config", unreachable)
		if status.State != upstreamset.StateRemoved || !strings.Contains(status.Hint, "luanette upstream restore a") {
			t.Errorf("status %+v", status)
		}
		if got := f.Namespaces(); !slices.Equal(got, []string{"b"}) || !f.Removed()["a"] || f.Removed()["b"] {
			t.Errorf("namespaces %v, removed %v", got, f.Removed())
		}
	}
	remove()
	f.must(f.Restore(t.Context(), "a"))
	refused(t, f.Restore(t.Context(), "a"), fault.Conflict, "was not removed")
	remove()
	f.must(f.add("a", unreachable))
	remove()
	f.must(f.Unremove(t.Context(), []string{"a", "b", "none"}))
	if got := f.Namespaces(); !slices.Equal(got, []string{"a", "b"}) || len(f.Removed()) != 0 {
		t.Errorf("namespaces %v, removed %v", got, f.Removed())
	}
	edited := f.Edited([]upstream.Spec{{Name: "a", Settings: upstream.Settings{URL: unreachable}}, {Name: "b", Settings: upstream.Settings{URL: unreachable + "/2"}}, {Name: "c", Settings: upstream.Settings{URL: unreachable}}})
	if !slices.Equal(edited, []string{"b", "c"}) {
		t.Errorf("edited %v", edited)
	}
}

// echoTool is a source of one tool.
type echoTool struct{}

func (echoTool) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (echoTool) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output("said", call.Args)
}

// serve serves the tool echo over MCP.
func serve(t *testing.T) (url string) {
	t.Helper()
	h := hub.New(hub.Options{Name: "far", Version: "1", Tools: echoTool{}})
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL + "/mcp"
}

// The catalog has the tools of a connected upstream, exposes those that its settings
// name, and applies rules of the configuration and of startup.lua.
func TestCatalogFollowsTheSet(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Follow(ctx) }()
	defer func() { stop(); <-ended }()
	spec := upstream.Spec{Name: "far", Settings: upstream.Settings{URL: serve(t), Expose: []string{upstream.ExposeAll}, DisabledTools: []string{"ecko"}}}
	f.must(f.Configure([]upstream.Spec{spec}, nil, map[string]overlay.Rule{"far": {Aliases: map[string]string{"say": "echo"}}}))
	f.Await(t.Context(), "far")
	tools, err := f.Refresh(t.Context(), "far")
	if err != nil || len(tools) != 1 || tools[0].Name != "say" || tools[0].Original != "echo" {
		t.Fatalf("tools %+v, %v", tools, err)
	}
	if exposed, err := f.Catalog.Exposed().Tools(t.Context()); err != nil || len(exposed) != 1 || exposed[0].Name != "far__say" {
		t.Errorf("exposed %+v, %v", exposed, err)
	}
	status := f.want("far", "config", spec.URL)
	if status.State != "connected" || status.Tools != 1 || !strings.Contains(strings.Join(status.Warnings, " "), `did you mean echo?`) {
		t.Errorf("status %+v", status)
	}
	f.must(f.ChangeRule(t.Context(), "far", func(r *overlay.Rule) { r.Aliases = map[string]string{"speak": "echo"} }))
	if tools, ok := f.Catalog.In(t.Context(), "far"); !ok || len(tools) != 1 || tools[0].Name != "speak" {
		t.Errorf("after startup.lua: %+v", tools)
	}
	refused(t, f.ChangeRule(t.Context(), "far", func(r *overlay.Rule) { r.Aliases = map[string]string{"not a name": "echo"} }), fault.Config, "not a name")
	f.configure(nil)
	f.Catalog.Refresh(t.Context())
	if tools, ok := f.Catalog.In(t.Context(), "far"); ok {
		t.Errorf("after the removal: %+v", tools)
	}
}

// TestStatusOfOnesOwnConnection checks that the status of an upstream with a connection for
// each is that of whoever asks.
func TestStatusOfOnesOwnConnection(t *testing.T) {
	t.Parallel()
	f := openAlone(t)
	spec := upstream.Spec{Name: "crm", Settings: upstream.Settings{URL: "http://127.0.0.1:1/mcp", Login: upstream.LoginEach, Headers: map[string]string{"X-Key": "${personal:KEY}"}}}
	if err := f.Configure([]upstream.Spec{spec}, nil, nil); err != nil {
		t.Fatal(err)
	}
	ann := principal.With(t.Context(), principal.Principal{ID: "person:ann"})
	bob := principal.With(t.Context(), principal.Principal{ID: "person:bob"})
	if _, err := f.Manager.Call(ann, tool.Call{Ref: tool.Ref{Space: "crm", Name: "find"}}); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("without a value: %v", err)
	}
	s, _ := f.Status("crm")
	if own := s.For(ann); own.State != string(upstream.StateNeedsAuth) || own.Error == "" || own.People != 1 {
		t.Errorf("of ann: %+v", own)
	}
	if other := s.For(bob); other.State != string(upstream.StateAsleep) || other.Error != "" || !strings.Contains(other.Hint, "1 are connected") {
		t.Errorf("of bob: %+v", other)
	}
}
