package hub_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// everyMethod lists the methods that clients may request, in both eras.
var everyMethod = []string{
	wire.MethodInitialize, wire.MethodPing, wire.MethodDiscover, wire.MethodListen,
	wire.MethodToolsList, wire.MethodToolsCall, wire.MethodPromptsList, wire.MethodPromptsGet,
	wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodUnsubscribe,
	wire.MethodComplete, wire.MethodSetLevel,
	wire.MethodTasksGet, wire.MethodTasksCancel, wire.MethodTasksUpdate, wire.MethodTasksList, wire.MethodTasksResult,
	"no/such/method",
}

// channel is a connection with one stream for all answers.
type channel struct {
	send func(body string)
	next func() wire.Message
	end  func() // the client disconnects; it returns when the hub has noticed
}

// stdioChannel connects a client over pipes.
func stdioChannel(t *testing.T, h *hub.Hub, _ string) channel {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- h.ServeStdio(context.Background(), in, out); out.Close() }()
	lines := bufio.NewReader(hear)
	return channel{
		send: func(body string) {
			if _, err := io.WriteString(say, body+"\n"); err != nil {
				t.Fatal(err)
			}
		},
		next: func() wire.Message {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			m, err := wire.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		end: func() {
			say.Close()
			if err := <-ended; err != nil {
				t.Errorf("stdio: %v", err)
			}
		},
	}
}

// sseChannel connects a client over HTTP+SSE. When the test ends, the server waits for the
// handlers of what was posted.
func sseChannel(t *testing.T, _ *hub.Hub, url string) channel {
	open := httpjsontest.Open(t, http.MethodGet, url+"/mcp/sse", "")
	stream := events(t, open)
	first, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	address := url + string(first.Data)
	return channel{
		send: func(body string) {
			if posted := httpjsontest.Open(t, http.MethodPost, address, body); posted.StatusCode != http.StatusAccepted {
				t.Fatalf("%s: %s", body, posted.Status)
			}
		},
		next: func() wire.Message { return next(t, stream) },
		end:  func() { open.Body.Close() },
	}
}

// A request that reuses the id of a running one is refused, whatever its method is, and the
// connection goes on: what follows is answered, and it ends when the client disconnects.
func TestRefusedRequestsEnd(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T, *hub.Hub, string) channel{"stdio": stdioChannel, "sse": sseChannel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := newHanging()
			h, url := serve(t, options(t, tools{"slow": slow.run, "echo": echo}))
			c := connect(t, h, url)
			c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`)
			c.next()
			c.send((&client{t: t}).call("1", "slow", ""))
			<-slow.began
			for _, method := range everyMethod {
				for _, params := range []string{`{}`, `{"_meta":{` + (&client{}).modernMeta() + `}}`} {
					c.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
					if m := c.next(); m.ID != "1" || m.Error == nil {
						t.Fatalf("%s %s: answered with %s %s", method, params, m.ID, m.Result)
					}
				}
			}
			c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			if m := c.next(); m.ID != "2" || m.Error != nil {
				t.Errorf("a ping afterwards: %s %v", m.ID, m.Error)
			}
			close(slow.release)
			if m := c.next(); m.ID != "1" || m.Error != nil {
				t.Errorf("the first request: %s %v", m.ID, m.Error)
			}
			c.end()
		})
	}
}
