package jwt_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/oauthtest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// TestKeysElsewhere checks that an issuer whose metadata leads to keys in a private
// network, to endless ones or to none in time gets no token accepted, as resource server
// and at sign-ins.
func TestKeysElsewhere(t *testing.T) {
	t.Parallel()
	signer, release := oauthtest.NewIssuer(t), make(chan struct{})
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case path == ".well-known/openid-configuration":
			keys := map[string]string{
				"private": "http://10.0.0.1/keys", "metadata": "http://169.254.169.254/latest/meta-data", "good": signer.Keys(),
			}[kind]
			if keys == "" {
				keys = site.URL + "/" + kind + "/keys"
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": site.URL + "/" + kind, "jwks_uri": keys, "id_token_signing_alg_values_supported": []string{"RS256"}})
		case kind == "big":
			_, _ = w.Write([]byte(`{"keys":[],"x":"` + strings.Repeat("x", 10<<20) + `"}`)) // the client hangs up
		case kind == "slow":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(release) })
	client := netguard.Outbound{Loopback: true}.Client()
	impatient := *client
	impatient.Timeout = 200 * time.Millisecond
	for kind, good := range map[string]bool{"good": true, "private": false, "metadata": false, "big": false, "slow": false} {
		issuer, use := site.URL+"/"+kind, client
		if kind == "slow" {
			use = &impatient
		}
		token := signer.Token(t, "hub", oauthtest.Claims{"iss": issuer})
		_, err := jwt.New([]jwt.Issuer{{URL: issuer, Audience: "hub"}}, use).Principal(t.Context(), token)
		if (err == nil) != good || !good && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s, as resource server: %v", kind, err)
		}
		if _, err := jwt.NewProvider(issuer, "hub", use).VerifyID(t.Context(), token, ""); (err == nil) != good {
			t.Errorf("%s, at a sign-in: %v", kind, err)
		}
	}
}
