package server

import (
	"io"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

// withPeople makes the server offer sign-in.
const withPeople = `
public_url = "http://localhost:8081"
[identity.corp]
issuer = "http://127.0.0.1:1"
client_id = "hub"
roles = ["user"]
`

// startWithPeople starts a server on a database. It offers sign-in, and "root-token" is the key
// of an administrator.
func startWithPeople(t *testing.T, database string) (url string, srv *Server) {
	t.Helper()
	return start(t, config.Sources{
		File: configtest.WriteFile(t, withPeople+"[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n"),
		Env:  config.Environment{"ROOT": "root-token", "LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"},
	})
}

// TestListenRequiresAKey checks that a server without keys refuses to listen on an address
// that other machines can reach.
func TestListenRequiresAKey(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80"} {
		loaded, err := config.Load(config.Sources{Flags: map[string]string{"listen": address, "data": t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := Build(t.Context(), loaded, Options{Version: "test", Stderr: io.Discard, Env: config.Environment{}})
		if err != nil {
			t.Fatal(err)
		}
		err = srv.Serve(t.Context())
		if fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "luanette key create") {
			t.Errorf("%s: error %v, hint %q", address, err, fault.HintOf(err))
		}
	}
}
