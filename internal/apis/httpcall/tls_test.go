package httpcall_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/httpcall"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/base/fault"
)

// TestClientCertificate calls a service that wants a client certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority, pair := certpooltest.New(t)
	certFile, keyFile := certpooltest.WritePair(t, pair)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 1 {
			_, _ = io.WriteString(w, "known")
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	config, err := certpool.Config(authority)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := api.Environment{TLS: config, Header: http.Header{}, Settings: api.Settings{CertFile: certFile, KeyFile: keyFile}}
	client, err := httpcall.New(env, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Do(t.Context(), httpcall.Request{Method: http.MethodGet, URL: u})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "known" {
		t.Errorf("answered %q, error %v", body, err)
	}
	env.Settings.KeyFile = authority
	if _, err := httpcall.New(env, server.URL); fault.CodeOf(err) != fault.Config {
		t.Errorf("a key that does not belong to the certificate: %v", err)
	}
}
