package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
)

// TestOrganisationsAddUpstreams checks that those who manage an organisation add upstreams
// for it alone, over HTTP and outside of private networks, so many as they may, and change
// no others.
func TestOrganisationsAddUpstreams(t *testing.T) {
	t.Parallel()
	tools := serveTools(t, "fine", &shop{})
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, `
		mcp.allowed_hosts = ["127.0.0.1", "localhost"]
		[upstreams.fine]
		url = "`+tools+`"
		[orgs.acme]
		max_upstreams = 2
		[orgs.acme.upstreams.fixed]
		url = "`+tools+`"
		`)})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	tokens := map[string]string{}
	for name, rights := range map[string]apikey.Rights{
		"boss":   {Org: "acme", Scopes: []principal.Scope{principal.Org, principal.MCP, principal.Read}},
		"member": {Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Read}},
		"rival":  {Org: "beta", Scopes: []principal.Scope{principal.Admin}},
		"root":   {Scopes: []principal.Scope{principal.Admin}},
	} {
		var err error
		if _, tokens[name], err = srv.keys.Create(t.Context(), apikey.Key{Name: name, Rights: rights}); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/api/v1/orgs/acme/upstreams"
	server := func(name, address, more string) string {
		return `{"namespace":"` + name + `","url":"` + address + `"` + more + `}`
	}
	for n, step := range []struct {
		who, method, path, body string
		status                  int
		want                    string
	}{
		{"member", "POST", path, server("wiki", tools, ""), http.StatusForbidden, "scope"},
		{"rival", "POST", path, server("wiki", tools, ""), http.StatusForbidden, ""},
		{"boss", "POST", "/api/v1/orgs/beta/upstreams", server("wiki", tools, ""), http.StatusForbidden, ""},
		{"boss", "POST", "/api/v1/upstreams", server("wiki", tools, ""), http.StatusForbidden, ""},
		{"boss", "POST", path, server("wiki@beta", tools, ""), http.StatusBadRequest, "not a valid name"},
		{"boss", "POST", path, `{"namespace":"wiki"}`, http.StatusBadRequest, "operators"},
		{"boss", "POST", path, server("wiki", "https://10.0.0.1/mcp", ""), http.StatusForbidden, "private network"},
		{"boss", "POST", path, server("wiki", "https://[::1]/mcp", ""), http.StatusForbidden, "private network"},
		{"boss", "POST", path, server("wiki", "https://metadata.internal/mcp", ""), http.StatusForbidden, "private network"},
		{"boss", "POST", path, server("wiki", "http://wiki.example/mcp", ""), http.StatusForbidden, "only https"},
		{"boss", "POST", path, server("wiki", "zmq+tcp://127.0.0.1:1", ""), http.StatusForbidden, "over HTTP only"},
		{"boss", "POST", path, server("wiki", tools, `,"transport":"graphql"`), http.StatusForbidden, "over HTTP"},
		{"boss", "POST", path, server("fixed", tools, ""), http.StatusConflict, "belongs to the configuration"},
		{"boss", "GET", path, "", http.StatusOK, `"upstreams":[]`},
		{"boss", "POST", path, server("wiki", tools, `,"headers":{"X-Key":"a"}`), http.StatusOK, `"added"`},
		{"boss", "POST", path, server("wiki", tools, ""), http.StatusConflict, ""},
		{"boss", "POST", path, server("near", strings.Replace(tools, "127.0.0.1", "localhost", 1), ""), http.StatusOK, `"added"`},
		{"boss", "POST", path, server("more", tools, ""), http.StatusTooManyRequests, "may add 2 upstreams"},
		{"member", "GET", "/api/v1/upstreams/wiki", "", http.StatusOK, `"connected"`},
		{"rival", "GET", "/api/v1/upstreams/wiki", "", http.StatusNotFound, ""},
		{"rival", "GET", path, "", http.StatusForbidden, ""},
		{"rival", "DELETE", path + "/wiki", "", http.StatusForbidden, ""},
		{"rival", "DELETE", "/api/v1/orgs/beta/upstreams/wiki", "", http.StatusNotFound, ""},
		{"rival", "DELETE", "/api/v1/orgs/beta/upstreams/wiki@acme", "", http.StatusNotFound, ""},
		{"member", "POST", path + "/wiki/disable", "", http.StatusForbidden, ""},
		{"boss", "DELETE", path + "/fixed", "", http.StatusNotFound, "operators"},
		{"boss", "POST", path + "/fine/disable", "", http.StatusNotFound, "operators"},
		{"boss", "POST", path + "/fixed/restart", "", http.StatusNotFound, "operators"},
		{"boss", "GET", path, "", http.StatusOK, `"headers":{"X-Key":null}`},
		{"boss", "GET", "/api/v1/upstreams/wiki", "", http.StatusOK, `"editable":false`}, // its settings are where they are changed
		{"boss", "PATCH", path + "/wiki", `{"read_only":true}`, http.StatusOK, `"read_only":true`},
		{"boss", "PATCH", path + "/wiki", `{"headers":{"X-Key":null,"X-More":"b"}}`, http.StatusOK, `"headers":{"X-Key":null,"X-More":null}`},
		{"boss", "PATCH", path + "/wiki", `{"url":"https://10.0.0.1/mcp"}`, http.StatusForbidden, "private network"},
		{"boss", "PATCH", path + "/wiki", `{"url":"http://wiki.example/mcp"}`, http.StatusForbidden, "only https"},
		{"boss", "PATCH", path + "/wiki", `{"transport":"graphql"}`, http.StatusForbidden, "over HTTP"},
		{"boss", "PATCH", path + "/wiki", `{"url":"` + strings.Replace(tools, "127.0.0.1", "localhost", 1) + `"}`, http.StatusBadRequest, "not sent to another server"},
		{"boss", "PATCH", path + "/wiki", `{"command":"sh"}`, http.StatusBadRequest, "command"},
		{"boss", "PATCH", path + "/fixed", `{"read_only":true}`, http.StatusNotFound, "operators"},
		{"boss", "PATCH", "/api/v1/upstreams/wiki", `{"read_only":false}`, http.StatusForbidden, ""},
		{"member", "PATCH", path + "/wiki", `{"read_only":false}`, http.StatusForbidden, ""},
		{"rival", "PATCH", path + "/wiki", `{"read_only":false}`, http.StatusForbidden, ""},
		{"rival", "PATCH", "/api/v1/orgs/beta/upstreams/wiki", `{"read_only":false}`, http.StatusNotFound, ""},
		{"boss", "PATCH", path + "/wiki", `{"read_only":false,"headers":{}}`, http.StatusOK, `"settings":{"url"`},
		{"boss", "POST", path + "/wiki/restart", "", http.StatusOK, ""},
		{"boss", "POST", path + "/wiki/disable", "", http.StatusOK, `"removed"`},
		{"boss", "POST", path + "/wiki/restore", "", http.StatusOK, `"added"`},
		{"boss", "DELETE", path + "/near", "", http.StatusOK, `"removed":true`},
		{"root", "POST", path, server("more", tools, ""), http.StatusOK, `"added"`},
		{"root", "GET", "/api/v1/upstreams/fine", "", http.StatusOK, `"connected"`},
		{"root", "GET", "/api/v1/upstreams/fixed@acme", "", http.StatusOK, `"connected"`},
		{"boss", "GET", path, "", http.StatusOK, `"wiki"`},
	} {
		srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
		name, value := httpjsontest.Bearer(tokens[step.who])
		response, text := httpjsontest.Read(t, step.method, url+step.path, step.body, name, value)
		if response.StatusCode != step.status || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), step.want) {
			t.Errorf("step %d, %s %s %s %s: %d %s", n, step.who, step.method, step.path, step.body, response.StatusCode, text)
		}
	}
	if stored, err := srv.upstreams.Store.All(t.Context()); err != nil || len(stored) != 2 {
		t.Errorf("%d upstreams are stored, %v", len(stored), err)
	}
}

// TestOrganisationsConnectUpstreams checks that mcp_connect and mcp_disconnect give those who
// manage an organisation what the API gives them, and others nothing.
func TestOrganisationsConnectUpstreams(t *testing.T) {
	t.Parallel()
	tools := serveTools(t, "fine", &shop{})
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, `
		mcp.allowed_hosts = ["127.0.0.1"]
		[upstreams.fine]
		url = "`+tools+`"
		[orgs.acme]
		max_upstreams = 1
		[orgs.acme.upstreams.fixed]
		url = "`+tools+`"
		`)})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	clients := map[string]keyClient{}
	for name, rights := range map[string]apikey.Rights{
		"boss":   {Org: "acme", Scopes: []principal.Scope{principal.Org, principal.MCP}},
		"member": {Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Read}},
		"rival":  {Org: "beta", Scopes: []principal.Scope{principal.Admin}},
		"root":   {Scopes: []principal.Scope{principal.Admin}},
	} {
		_, token, err := srv.keys.Create(t.Context(), apikey.Key{Name: name, Rights: rights})
		if err != nil {
			t.Fatal(err)
		}
		clients[name] = keyClient{t, url, token}
	}
	at := func(name, address, more string) string {
		return `{"namespace":"` + name + `","url":"` + address + `","wait_ms":30000` + more + `}`
	}
	for n, step := range []struct{ who, tool, args, want string }{
		{"member", "mcp_connect", at("wiki", tools, ""), `Unknown tool`},
		{"member", "mcp_disconnect", `{"namespace":"fine"}`, `Unknown tool`},
		{"boss", "mcp_connect", at("wiki@beta", tools, ""), "does not manage the organisation beta"},
		{"boss", "mcp_connect", at("wiki", "https://10.0.0.1/mcp", ""), "private network"},
		{"boss", "mcp_connect", at("wiki", "zmq+tcp://127.0.0.1:1", ""), "over HTTP only"},
		{"boss", "mcp_connect", at("wiki", tools, `,"transport":"graphql"`), "over HTTP"},
		{"boss", "mcp_connect", at("fixed", tools, ""), "belongs to the configuration"},
		{"boss", "mcp_connect", at("wiki", tools, ""), `"namespace":"wiki"`},
		{"boss", "mcp_connect", at("wiki@acme", tools, ""), `"state":"connected"`}, // the same again
		{"boss", "mcp_connect", at("more", tools, ""), "may add 1 upstreams"},
		{"member", "mcp_status", `{"namespace":"wiki"}`, `"state":"connected"`},
		{"rival", "mcp_status", `{"namespace":"wiki"}`, `no upstream`},
		{"rival", "mcp_disconnect", `{"namespace":"wiki"}`, `"removed":false`},
		{"rival", "mcp_disconnect", `{"namespace":"wiki@acme"}`, "does not manage the organisation acme"},
		{"boss", "mcp_disconnect", `{"namespace":"fixed"}`, "operators"},
		{"boss", "mcp_disconnect", `{"namespace":"fine"}`, "operators"},
		{"root", "mcp_status", `{"namespace":"wiki@acme"}`, `"state":"connected"`},
		{"root", "mcp_connect", at("given@acme", tools, ""), `"namespace":"given@acme"`}, // operators have no limit
		{"boss", "mcp_connect", at("given", tools, ""), "the operators of the server added given"},
		{"boss", "mcp_disconnect", `{"namespace":"wiki"}`, `"removed":true`},
		{"boss", "mcp_disconnect", `{"namespace":"wiki"}`, `"removed":false`},
		{"root", "mcp_connect", at("own", tools, ""), `"namespace":"own"`},
		{"boss", "mcp_disconnect", `{"namespace":"own"}`, "operators"},
	} {
		if text := clients[step.who].call(step.tool, step.args); !strings.Contains(text, step.want) {
			t.Errorf("step %d, %s: %s %s: %s", n, step.who, step.tool, step.args, text)
		}
	}
}

// TestOrganisationsReachNoPrivateAddresses checks that a name which an organisation may
// use is not connected to if its address is that of this machine.
func TestOrganisationsReachNoPrivateAddresses(t *testing.T) {
	t.Parallel()
	near := strings.Replace(serveTools(t, "fine", &shop{}), "127.0.0.1", "localhost", 1)
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, "mcp.allowed_hosts = [\"localhost\"]\n")})
	for name, rights := range map[string]apikey.Rights{
		"boss": {Org: "acme", Scopes: []principal.Scope{principal.Org, principal.Read}}, "root": {Scopes: []principal.Scope{principal.Admin}},
	} {
		_, token, err := srv.keys.Create(t.Context(), apikey.Key{Name: name, Rights: rights})
		if err != nil {
			t.Fatal(err)
		}
		path, want := "/api/v1/orgs/acme/upstreams", "may not reach this machine"
		if name == "root" {
			path, want = "/api/v1/upstreams", `"connected"`
		}
		header, value := httpjsontest.Bearer(token)
		httpjsontest.Read(t, http.MethodPost, url+path, `{"namespace":"near","url":"`+near+`"}`, header, value)
		srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
		if _, text := httpjsontest.Read(t, http.MethodGet, url+"/api/v1/upstreams/near", "", header, value); !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
