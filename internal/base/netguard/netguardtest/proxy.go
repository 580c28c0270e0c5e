package netguardtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Proxy is an HTTP proxy behind which everything is one server.
type Proxy struct {
	URL string

	mu    sync.Mutex
	asked []string
}

// NewProxy starts a proxy that leads all requests and tunnels to an address.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p := &Proxy{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		next, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = next.Close() }()
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusOK)
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		if r.Method != http.MethodConnect && r.Write(next) != nil {
			return
		}
		go func() {
			_, _ = io.Copy(next, buffered) // ends with the connection
			_ = next.Close()
		}()
		_, _ = io.Copy(conn, next)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Asked returns the methods and hosts of all requests to the proxy.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}
