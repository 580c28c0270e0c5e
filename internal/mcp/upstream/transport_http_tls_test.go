package upstream_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

func serveTLS(t *testing.T, certificate tls.Certificate, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// A server with a certificate of a private authority is reached with ca_file, its own or
// that of all upstreams.
func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	file, certificate := certpooltest.New(t)
	for name, handler := range map[string]func() http.Handler{"modern": modernHandler, "legacy": legacyHandler, "sse": sseHandler} {
		for _, own := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				srv := upstreamtest.Server{Spec: upstream.Spec{Name: "test", URL: serveTLS(t, certificate, handler())}, Options: options(t)}
				if own {
					srv.Spec.CAFile = file
				} else {
					srv.Options.CAFile = file
				}
				h := upstreamtest.Start(t, srv)
				if text := h.Echo(t, "secure"); text != "secure" {
					t.Errorf("echo said %q", text)
				}
			})
		}
	}
}

// Without it, the status says what to do.
func TestUnknownAuthority(t *testing.T) {
	t.Parallel()
	_, certificate := certpooltest.New(t)
	url := serveTLS(t, certificate, modernHandler())
	for file, want := range map[string]string{"": "unknown authority", "missing.pem": "no such file"} {
		h := upstreamtest.Open(t, upstreamtest.Server{Spec: upstream.Spec{Name: "test", URL: url, CAFile: file}, Options: options(t)})
		h.Await(t, "upstream.reconnecting")
		st, _ := h.Manager.Status("test")
		if !strings.Contains(st.LastError, want) || !strings.Contains(st.Hint, "ca_file") {
			t.Errorf("ca_file %q: %s, hint %q", file, st.LastError, st.Hint)
		}
	}
}
