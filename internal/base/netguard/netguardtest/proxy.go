package netguardtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", to)
	}
	transport := &http.Transport{DialContext: dial}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", to, to
	}}
	p := &Proxy{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host)
		p.mu.Unlock()
		if r.Method != http.MethodConnect {
			forward.ServeHTTP(w, r)
			return
		}
		next, err := dial(r.Context(), "", "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = next.Close() }()
		w.WriteHeader(http.StatusOK)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		go func() {
			_, _ = io.Copy(next, conn) // ends with the connection
			_ = next.Close()
		}()
		_, _ = io.Copy(conn, next)
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	p.URL = server.URL
	return p
}

// Asked returns the methods and hosts of all requests to the proxy.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}
