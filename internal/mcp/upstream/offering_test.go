package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// library is a server with five resources, a template and two prompts.
func library() *mcp.Server {
	s := newServer()
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}}}, nil
	}
	for i := range 5 {
		s.AddResource(&mcp.Resource{URI: fmt.Sprintf("book://%d", i+1), Name: fmt.Sprint("book ", i+1)}, read)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "page://{n}", Name: "page"}, read)
	for _, name := range []string{"review", "summary"} {
		s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	return s
}

func startLibrary(t *testing.T, s *mcp.Server, change func(*upstreamtest.Server)) *upstreamtest.Harness {
	t.Helper()
	srv := httpServer(t, func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}, upstream.Spec{})
	if change != nil {
		change(&srv)
	}
	return upstreamtest.Open(t, srv)
}

// listed are the names or URIs of a list.
func listed(t *testing.T, m *upstream.Manager, method, id string) (names []string) {
	t.Helper()
	peer, ok := m.Peer("test")
	if !ok {
		t.Fatal("there is no upstream")
	}
	for _, item := range peer.Listed(t.Context(), method) {
		name, _ := rawjson.GetText(item, id)
		names = append(names, name)
	}
	return names
}

func TestOfferingIsKnown(t *testing.T) {
	t.Parallel()
	s := library()
	var srv upstreamtest.Server
	h := startLibrary(t, s, func(server *upstreamtest.Server) { srv = *server })
	want := []string{"book://1", "book://2", "book://3", "book://4", "book://5"}
	if got := listed(t, h.Manager, wire.MethodResourcesList, "uri"); !slices.Equal(got, want) { // it waits for the first lists
		t.Fatalf("resources: %q", got)
	}
	if got := listed(t, h.Manager, wire.MethodResourceTemplates, "uriTemplate"); !slices.Equal(got, []string{"page://{n}"}) {
		t.Errorf("templates: %q", got)
	}
	h.Await(t, "upstream.lists_refreshed")
	s.AddPrompt(&mcp.Prompt{Name: "later"}, nil)
	h.Await(t, "upstream.lists_refreshed")
	prompts := []string{"later", "review", "summary"}
	if got := listed(t, h.Manager, wire.MethodPromptsList, "name"); !slices.Equal(got, prompts) {
		t.Errorf("after list_changed the prompts are %q", got)
	}
	srv.Kill(t)
	h.Await(t, "upstream.lost")
	if got := listed(t, h.Manager, wire.MethodPromptsList, "name"); !slices.Equal(got, prompts) {
		t.Errorf("while the server is down the prompts are %q", got)
	}
	restarted := upstreamtest.Open(t, srv)
	restarted.Await(t, "upstream.tools_refreshed") // from the cache
	if got := listed(t, restarted.Manager, wire.MethodPromptsList, "name"); !slices.Equal(got, prompts) {
		t.Errorf("after a restart without the server the prompts are %q", got)
	}
}

func TestSettingsLeaveOutOfTheOffering(t *testing.T) {
	t.Parallel()
	h := startLibrary(t, library(), func(srv *upstreamtest.Server) {
		srv.Spec.Prompts, srv.Spec.Resources = upstream.Offer{""}, upstream.Offer{"book://*", "page://*"}
		if err := srv.Spec.Resources.UnmarshalJSON([]byte(`["book://2","page://*"]`)); err != nil {
			t.Fatal(err)
		}
	})
	if got := listed(t, h.Manager, wire.MethodResourcesList, "uri"); !slices.Equal(got, []string{"book://2"}) {
		t.Errorf("resources: %q", got)
	}
	if got := listed(t, h.Manager, wire.MethodPromptsList, "name"); len(got) > 0 {
		t.Errorf("prompts: %q", got)
	}
	peer, _ := h.Manager.Peer("test")
	page, err := peer.Request(t.Context(), wire.MethodPromptsList, nil, nil)
	if prompts, _ := rawjson.Get(page, "prompts"); err != nil || string(prompts) != "[]" {
		t.Errorf("a page of prompts: %s, %v", page, err)
	}
	for params, refused := range map[string]bool{`{"uri":"book://1"}`: true, `{"uri":"book://2"}`: false, `{"uri":"page://7"}`: false} {
		_, err := peer.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(params), nil)
		if got := fault.CodeOf(err) == fault.NotFound; got != refused || !refused && err != nil {
			t.Errorf("read %s: %v", params, err)
		}
	}
	if _, err := peer.Request(t.Context(), wire.MethodPromptsGet, json.RawMessage(`{"name":"review"}`), nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a prompt that the settings leave out: %v", err)
	}
}

func TestOfferInFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"all"`: `"all"`, `"none"`: `"none"`, `[]`: `"none"`, `["a","b*"]`: `["a","b*"]`} {
		var o upstream.Offer
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(o); err != nil || string(got) != want {
			t.Errorf("%s is written as %s, %v", text, got, err)
		}
	}
	var o upstream.Offer
	if err := json.Unmarshal([]byte(`"some"`), &o); fault.HintOf(err) == "" {
		t.Errorf("some: %v", err)
	}
}
