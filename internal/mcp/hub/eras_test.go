//nolint:staticcheck // roots, sampling and logging are deprecated, and must work for years to come
package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// roleVariable makes the test binary a server on its standard streams.
const roleVariable = "HUB_TEST_ROLE"

// playServer serves the SDK's server over stdio, which speaks both eras there.
func playServer() int {
	if err := newEraServer(context.Background()).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "server ended:", err)
	}
	return 0
}

func newEraServer(ctx context.Context) *mcp.Server {
	seen := make(chan string, 1) // the roots, whenever they have changed
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, &mcp.ServerOptions{
		RootsListChangedHandler: func(_ context.Context, r *mcp.RootsListChangedRequest) {
			go func() { // the handler must return before the answer can come
				roots, err := r.Session.ListRoots(ctx, nil)
				raw, _ := json.Marshal(roots)
				seen <- fmt.Sprint(string(raw), err)
			}()
		},
	})
	mcp.AddTool(s, &mcp.Tool{Name: "changed roots"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return farText(<-seen), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "push"}, farPush)
	mcp.AddTool(s, &mcp.Tool{Name: "three"}, farThree)
	mcp.AddTool(s, &mcp.Tool{Name: "report"}, farReport)
	return s
}

// farPush asks by requests during the call, which only the sessions era allows.
func farPush(ctx context.Context, r *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	name, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Name?", RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}},
	}})
	if err != nil {
		return nil, nil, err
	}
	capital, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "?"}}}})
	if err != nil {
		return nil, nil, err
	}
	roots, err := r.Session.ListRoots(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal([]any{name, capital, roots})
	return farText(string(raw)), nil, err
}

// eraServers are servers that speak both eras, and one of the sessions era only.
var eraServers = []struct {
	name string
	both bool
	spec func(t *testing.T) upstream.Spec
}{
	{"go", true, func(t *testing.T) upstream.Spec {
		binary, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return upstream.Spec{Settings: upstream.Settings{Command: binary, Env: map[string]string{roleVariable: "server"}}}
	}},
	{"go http", true, func(t *testing.T) upstream.Spec {
		return upstream.Spec{Settings: upstream.Settings{URL: serveBothEras(t)}}
	}},
	{"typescript 2", true, func(t *testing.T) upstream.Spec { return nodeSpec(t, "server2.js") }},
	{"typescript 1", false, func(t *testing.T) upstream.Spec { return nodeSpec(t, "server1.js") }},
}

func nodeSpec(t *testing.T, script string) upstream.Spec {
	return upstream.Spec{Settings: upstream.Settings{Command: "node", Args: []string{filepath.Join("testdata", "typescript", script), npmtest.Modules(t)}, Env: map[string]string{"PATH": os.Getenv("PATH")}}}
}

// serveBothEras serves sessions and the modern era at one address.
func serveBothEras(t *testing.T) string {
	server := newEraServer(t.Context())
	handler := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	}
	modern, legacy := handler(true), handler(false)
	mux := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.HeaderRevision) == wire.NewestModern {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { mux.CloseClientConnections(); mux.Close() })
	return mux.URL
}

// Clients of either era use servers of either era, and servers that speak both: what a
// server asks reaches the client wherever both sides have a way for it.
func TestEras(t *testing.T) {
	t.Parallel()
	for _, server := range eraServers {
		for _, protocol := range []string{upstream.Auto, upstream.ProtocolLegacy, upstream.ProtocolModern} {
			if protocol == upstream.ProtocolModern && !server.both {
				continue
			}
			for _, version := range []string{wire.Revision2607, wire.Revision2511} {
				t.Run(fmt.Sprintf("%s to %s %s", version, server.name, protocol), func(t *testing.T) {
					t.Parallel()
					spec := server.spec(t)
					spec.Protocol = protocol
					manager, url := relayed(t, spec)
					p := connect(t, &mcp.StreamableClientTransport{Endpoint: url}, version)
					checkNotificationsThrough(t, p, version)
					if server.both {
						checkQuestionsThrough(t, p)
					}
					checkPush(t, p, protocol != upstream.ProtocolModern)
					want := upstream.ProtocolLegacy
					if protocol == upstream.ProtocolModern {
						want = protocol
					}
					if st, _ := manager.Status("far"); st.Era != want {
						t.Errorf("era %s", st.Era)
					}
				})
			}
		}
	}
}

// relayed puts a hub in front of an upstream, under its original names.
func relayed(t *testing.T, spec upstream.Spec) (*upstream.Manager, string) {
	t.Helper()
	manager := upstream.New(upstream.Options{})
	t.Cleanup(manager.Close)
	spec.Name, spec.Wait = "far", duration.Duration(clocktest.Timeout)
	if err := manager.Add(spec); err != nil {
		t.Fatal(err)
	}
	opts := options(t, tools{})
	opts.Upstreams = managed{manager}
	_, url := serve(t, opts)
	return manager, url + "/mcp/far"
}

// checkPush calls a tool that asks during the call. In the modern era it cannot.
func checkPush(t *testing.T, p *peer, can bool) {
	t.Helper()
	got, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "push"})
	if err != nil {
		t.Fatalf("push: %v", err)
	}
	text := got.Content[0].(*mcp.TextContent).Text
	if !can {
		if !got.IsError || !strings.Contains(text, "2026-07-28") {
			t.Errorf("it asked during a modern call: %s", text)
		}
		return
	}
	for _, want := range []string{"Ada", "Paris", "file:///home"} {
		if !strings.Contains(text, want) {
			t.Errorf("answers %s lack %s", text, want)
		}
	}
}

// A server without sessions over HTTP answers initialize, but cannot ask. It stays modern.
func TestStatelessServerStaysModern(t *testing.T) {
	t.Parallel()
	manager, url := relayed(t, upstream.Spec{Settings: upstream.Settings{URL: startSDKServer(t, "modern").url}})
	p := connect(t, &mcp.StreamableClientTransport{Endpoint: url}, wire.Revision2511)
	checkQuestionsThrough(t, p)
	if st, _ := manager.Status("far"); st.Era != upstream.ProtocolModern {
		t.Errorf("era %s", st.Era)
	}
}

// When the roots of a client change, the servers that it uses learn of it and get the new
// ones, in every pair of eras that has such a notification.
func TestChangedRootsArePassedOn(t *testing.T) {
	t.Parallel()
	for _, server := range eraServers[:2] {
		for _, protocol := range []string{upstream.Auto, upstream.ProtocolLegacy} {
			t.Run(server.name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				spec := server.spec(t)
				spec.Protocol = protocol
				_, url := relayed(t, spec)
				p := connect(t, &mcp.StreamableClientTransport{Endpoint: url}, wire.Revision2511)
				checkPush(t, p, true) // now it uses the server
				p.client.AddRoots(&mcp.Root{URI: "file:///added"})
				got, err := p.CallTool(t.Context(), &mcp.CallToolParams{Name: "changed roots"})
				if err != nil {
					t.Fatal(err)
				}
				if text := got.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "file:///home") || !strings.Contains(text, "file:///added") {
					t.Errorf("the server saw %s", text)
				}
			})
		}
	}
}
