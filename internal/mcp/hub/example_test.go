package hub_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// A hub needs a name and tools. MCP clients of every supported revision can call them.
func Example() {
	h := hub.New(hub.Options{
		Name: "greeter", Version: "1.0.0",
		Tools: tools{"greet": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output("Hello!", nil)
		}},
	})
	server := httptest.NewServer(h.Handler())
	defer server.Close()
	defer h.Close(context.Background())

	ctx := context.Background()
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "someone", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"},
			&mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(revision, result.Content[0].(*mcp.TextContent).Text)
		session.Close()
	}
	// Output:
	// 2025-06-18 Hello!
	// 2026-07-28 Hello!
}
