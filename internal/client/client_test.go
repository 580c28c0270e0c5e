package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/server"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestConnectReportsARefusedConnection(t *testing.T) {
	t.Parallel()
	_, err := Connect(t.Context(), "127.0.0.1:1", Options{})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "refused") || !strings.Contains(fault.HintOf(err), "luanette serve") {
		t.Errorf("error %v, hint %s", err, fault.HintOf(err))
	}
}

// TestServerAddress checks where MCP is at a server whose address has a path of its own.
func TestServerAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:8081": "http://127.0.0.1:8081/mcp", "https://hub.example/": "https://hub.example/mcp", "https://hub.example/mcp/sets/a": "https://hub.example/mcp/sets/a",
		"https://hub.example/tools": "https://hub.example/tools/mcp", "https://hub.example/tools/": "https://hub.example/tools/mcp", "https://hub.example/tools/mcp": "https://hub.example/tools/mcp",
	} {
		if got, err := serverSpec(address); err != nil || got.URL != want {
			t.Errorf("%s: %s, %v, want %s", address, got.URL, err, want)
		}
	}
}

// TestConnectShowsTheRefusal checks that a server that refuses requests to a name
// which is not its own says so, whatever the key.
func TestConnectShowsTheRefusal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"the Host \"x\" is not this server; set public_url"}}`)
	}))
	defer server.Close()
	_, err := Connect(t.Context(), server.URL, Options{})
	if fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), `the Host "x" is not this server; set public_url`) {
		t.Errorf("the error is %v", err)
	}
}

// TestKeyChangesAreAudited checks that the audit log contains keys that a command creates
// or revokes without a server.
func TestKeyChangesAreAudited(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{Flags: map[string]string{"data": t.TempDir(), "node": "west"}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeys(t.Context(), loaded, config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Create(t.Context(), httpauth.NewKey{Name: "web", Rights: apikey.Rights{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Revoke(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if err := keys.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := audit.OpenStore(t.Context(), dbtest.Open(t, loaded.Database))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := store.Find(t.Context(), audit.Filter{Node: "west"})
	if err != nil || len(entries) != 2 || entries[0].Action != "key.created" || entries[1].Action != "key.revoked" {
		t.Errorf("%+v %v", entries, err)
	}
}

// TestDatabaseByReference checks that commands open the same database as the server when
// its URL is a reference.
func TestDatabaseByReference(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{
		"sqlite":   "sqlite:" + t.TempDir() + "/elsewhere.db",
		"postgres": dbtest.Postgres(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := config.Environment{"HOME": t.TempDir(), "WHERE": database}
			file := configtest.WriteFile(t, `database = "${env:WHERE}"`)
			load := func() *config.Loaded {
				loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"data": t.TempDir(), "node": "west"}})
				if err != nil {
					t.Fatal(err)
				}
				return loaded
			}
			srv, err := server.Build(t.Context(), load(), server.Options{Version: "test", Stderr: io.Discard, Env: env, Jobs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close(t.Context())
			if list, err := Nodes(t.Context(), load(), env); err != nil || len(list) != 1 || list[0].Name != "west" {
				t.Errorf("nodes: %+v, %v", list, err)
			}
			keys, err := OpenKeys(t.Context(), load(), env)
			if err != nil {
				t.Fatal(err)
			}
			made, err := keys.Create(t.Context(), httpauth.NewKey{Name: "web"})
			if err := keys.Close(); err != nil {
				t.Error(err)
			}
			if err != nil || made.Token == "" {
				t.Fatal(made, err)
			}
			raw, err := Local(srv, 0).Admin(t.Context(), "GET", "/api/v1/audit?action=key.created", nil)
			if err != nil || !strings.Contains(string(raw), "web") {
				t.Errorf("the server does not see the key: %s, %v", raw, err)
			}
		})
	}
}

// TestDatabaseByUnknownReference checks that an unresolved reference is an invalid_config
// fault.
func TestDatabaseByUnknownReference(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{File: configtest.WriteFile(t, `database = "${env:NOWHERE}"`), Flags: map[string]string{"data": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(t.Context(), loaded, config.Environment{}); fault.CodeOf(err) != fault.Config {
		t.Errorf("keys: %v", err)
	}
	if _, err := Nodes(t.Context(), loaded, config.Environment{}); fault.CodeOf(err) != fault.Config {
		t.Errorf("nodes: %v", err)
	}
}
