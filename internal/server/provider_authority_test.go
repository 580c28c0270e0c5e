package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/identity/identitytest"
	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// TestProviderOfAnOwnAuthority checks that people sign in at a provider whose certificate is of
// the company's authority, which ca_file names.
func TestProviderOfAnOwnAuthority(t *testing.T) {
	t.Parallel()
	caFile, certificate := certpooltest.New(t)
	var provider *httptest.Server
	provider = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": provider.URL, "authorization_endpoint": provider.URL + "/authorize", "token_endpoint": provider.URL + "/token", "jwks_uri": provider.URL + "/keys"})
	}))
	provider.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	provider.StartTLS()
	t.Cleanup(provider.Close)
	file := fmt.Sprintf("ca_file = %q\npublic_url = \"http://localhost:8081\"\noauth.key = \"${env:KEY}\"\n[identity.corp]\nissuer = %q\nclient_id = \"hub\"\nroles = [\"user\"]\n", caFile, provider.URL)
	address, _ := start(t, config.Sources{File: configtest.WriteFile(t, file), Env: config.Environment{"KEY": "a key that is long enough"}})
	browser := identitytest.New(t)
	browser.Stop = func(to *url.URL) bool { return to.Path == "/authorize" }
	page := browser.Open(t, address+"/signin")
	if !strings.HasPrefix(page.To, provider.URL+"/authorize?") {
		t.Errorf("%d %s leads to %q: %s", page.Status, page.URL, page.To, page.Body)
	}
}
