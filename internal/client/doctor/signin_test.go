package doctor_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/certpool/certpooltest"
	"github.com/luanette/luanette/internal/client/doctor"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// front is what a doctor finds at the addresses of a configuration: a provider and the proxy at
// public_url, with a certificate of an authority of the company.
func front(t *testing.T, handler http.Handler) (at *httptest.Server, caFile string) {
	t.Helper()
	caFile, certificate := certpooltest.New(t)
	at = httptest.NewUnstartedServer(handler)
	at.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	at.StartTLS()
	t.Cleanup(at.Close)
	return at, caFile
}

// TestSignInAndPublicURL checks that the provider and the public address are asked as the server
// and browsers ask them, with the authorities of ca_file.
func TestSignInAndPublicURL(t *testing.T) {
	t.Parallel()
	var at *httptest.Server
	told := ""
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": at.URL, "authorization_endpoint": at.URL + "/authorize", "token_endpoint": at.URL + "/token", "jwks_uri": at.URL + "/keys"})
	})
	mux.HandleFunc("GET /hub/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok","version":"1"}`) })
	mux.HandleFunc("GET /hub/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+told+`/.well-known/oauth-protected-resource"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	at, caFile := front(t, mux)
	const file = "public_url = %q\n[identity.corp]\nissuer = %q\nclient_id = \"hub\"\nclient_secret = \"${env:SECRET}\"\nroles = [\"user\"]\n"
	for name, c := range map[string]struct {
		file string
		env  config.Environment
		told string
		want []string
	}{
		"all is well": {"ca_file = %q\n" + file, config.Environment{"SECRET": "x"}, "/hub", []string{
			"ok ca_file " + caFile, "ok identity corp " + at.URL + " answers; its redirect URI is " + at.URL + "/hub/signin/callback", "ok public_url " + at.URL + "/hub leads to a luanette",
		}},
		"unknown authority":         {"# %s\n" + file, config.Environment{"SECRET": "x"}, "/hub", []string{"problem identity corp fetch the metadata", "name the authority's PEM file with ca_file", "note public_url"}},
		"no secret":                 {"ca_file = %q\n" + file, nil, "/hub", []string{"problem identity corp", "SECRET"}},
		"no key for what is stored": {"oauth.key = \"${env:KEY}\"\n# %s\n" + file, config.Environment{"SECRET": "x"}, "/hub", []string{"problem oauth.key", "KEY"}},
		"proxy changes the host":    {"ca_file = %q\n" + file, config.Environment{"SECRET": "x"}, "/other", []string{"note public_url", "tells clients without a token another address"}},
		"no file":                   {"ca_file = \"missing-%s\"\n" + file, config.Environment{"SECRET": "x"}, "/hub", []string{"problem ca_file read ca_file", "problem identity corp read ca_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			told = at.URL + c.told
			path := caFile
			if strings.Contains(c.file, "missing") {
				path = "pem"
			}
			loaded, err := config.Load(config.Sources{
				File: configtest.WriteFile(t, fmt.Sprintf(c.file, path, at.URL+"/hub", at.URL)), Env: c.env, Flags: map[string]string{"data": filepath.Join(t.TempDir(), "data"), "listen": "127.0.0.1:0"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			doctor.Examine(t.Context(), doctor.Options{Config: loaded, Env: c.env}, func(f doctor.Finding) {
				found = append(found, strings.Join([]string{f.State, f.Check, f.Text, f.Fix}, " "))
			})
			for _, want := range c.want {
				if !slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, want) }) {
					t.Errorf("no %q in\n%s", want, strings.Join(found, "\n"))
				}
			}
		})
	}
}
