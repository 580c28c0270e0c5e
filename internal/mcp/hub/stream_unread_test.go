package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// largeList is a source whose list of tools has 240 KB.
type largeList struct{}

func (largeList) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: strings.Repeat("description ", 20_000), Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (largeList) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Output("", nil) }

// A client that opens a stream and never reads it is disconnected when its answers can no
// longer be sent.
func TestClientThatNeverReadsIsDisconnected(t *testing.T) {
	t.Parallel()
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: largeList{}, Limits: hub.Limits{Write: 2 * time.Second}})
	server := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		_ = h.Close(context.WithoutCancel(t.Context()))
		server.Close()
	})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /mcp/sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
	lines := bufio.NewReaderSize(conn, 512)
	var path string
	for path == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ = strings.Cut(strings.TrimSpace(line), "data: ")
	}
	if h.Sessions() != 1 {
		t.Fatalf("%d sessions", h.Sessions())
	}
	post := func(message string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	for i := range 100 { // each is answered with 240 KB, which the client does not read
		post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+1))
	}
	clocktest.Await(t, func() bool {
		return post(`{"jsonrpc":"2.0","method":"notifications/nothing"}`) == http.StatusNotFound && h.Sessions() == 0
	}, func() string { return "it is still served" })
}
