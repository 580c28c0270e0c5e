package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// A server that ends the stream after the answer, not with it, keeps its connection,
// however long the call took.
func TestConnectionOutlivesItsCall(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*testing.T, http.Handler) (*httpClient, *atomic.Int64){"plain": directTo, "TLS": secureTo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returned := make(chan struct{})
			var c *httpClient
			var connections *atomic.Int64
			c, connections = to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.untilWatched()
				answerStream(w, r)
				<-returned
			}))
			s, link := sessionOver(c, time.Minute)
			for i := range 5 {
				if _, err := s.do(t.Context(), &request{method: wire.MethodToolsList, params: []byte(`{}`), timeout: time.Minute}); err != nil {
					t.Fatal(err)
				}
				returned <- struct{}{}
				link.life.wg.Wait() // what is left is read
				if got := connections.Load(); got != 1 {
					t.Fatalf("%d connections for %d calls", got, i+1)
				}
			}
		})
	}
}

// untilWatched returns when whoever asked before does not wait unwatched any more: those
// who begin later are watched over later.
func (c *httpClient) untilWatched() {
	vigil := &c.vigil
	if c.direct != nil {
		vigil = &c.direct.vigil
	}
	ended, end := context.WithCancel(context.Background())
	end()
	noticed := make(chan struct{})
	var w cancel.Watch
	w.Begin(ended, vigil, func() { close(noticed) })
	<-noticed
	w.End()
}

// secureTo is directTo where the standard library has the connection.
func secureTo(t *testing.T, h http.Handler) (*httpClient, *atomic.Int64) {
	t.Helper()
	server, connections := counting(h)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := clientOf(t, server.URL+"/mcp")
	c.http.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	return c, connections
}

// answerStream answers a request with an event.
func answerStream(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body)
	w.Header().Set("Content-Type", wire.ContentEvent)
	_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
	_ = http.NewResponseController(w).Flush()
}

// One that never ends it is left alone.
func TestAnEndlessStreamIsLeft(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*testing.T, http.Handler) (*httpClient, *atomic.Int64){"plain": directTo, "TLS": secureTo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan struct{})
			c, _ := to(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answerStream(w, r)
				<-r.Context().Done()
				close(left)
			}))
			s, _ := sessionOver(c, time.Millisecond)
			if _, err := s.do(t.Context(), &request{method: wire.MethodToolsList, params: []byte(`{}`), timeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
			<-left
		})
	}
}

// sessionOver is one whose server may take so long to end an answer.
func sessionOver(c *httpClient, rest time.Duration) (*session, *httpTransport) {
	link := &httpTransport{client: c, limit: 1 << 20, rest: rest, life: newLifetime()}
	return &session{transport: link, life: newLifetime(), opts: &Options{}, flights: map[wire.ID]*flight{}, era: wire.Legacy}, link
}
