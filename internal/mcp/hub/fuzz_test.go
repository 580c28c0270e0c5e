package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// FuzzPost posts anything to the hub. Whatever comes, it answers: nothing, or one
// JSON message, or a stream; and it never answers 500.
func FuzzPost(f *testing.F) {
	c := &client{t: f, modern: true, caps: `{"elicitation":{}}`}
	for _, seed := range []string{
		"", "{", "[]", "null", `{"jsonrpc":"2.0"}`, initialize, ping,
		c.call("1", "echo", ""), c.call("1", "ask", ""), c.call("1", "ask", `,"requestState":"x","inputResponses":[]`),
		c.call("1", "report", `,"cursor":7`), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"MSBh","_meta":{` + c.modernMeta() + `}}}`,
		`{"jsonrpc":"2.0","id":1e400,"method":"tools/call","params":{"_meta":{"progressToken":{}}}}`,
	} {
		f.Add(seed, wire.NewestModern, "tools/call", "echo")
		f.Add(seed, "", "", "")
	}
	h := hub.New(hub.Options{Name: "t", Version: "1", Tools: protocolTools(), Offers: things{}})
	f.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		h.Close(ctx)
	})
	session := post(f, h.Handler(), nil, initialize).Header().Get(wire.HeaderSession)
	f.Fuzz(func(t *testing.T, body, revision, method, name string) {
		if strings.Contains(body, wire.MethodListen) {
			t.Skip("listens until it is closed")
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, wire.HeaderSession: {session},
		}
		for header, value := range map[string]string{wire.HeaderRevision: revision, wire.HeaderMethod: method, wire.HeaderName: name} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == wire.ContentJSON && !json.Valid(w.Body.Bytes()) {
			t.Errorf("answered %q", w.Body)
		}
	})
}
