package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/jobrunner"
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
	srv.upstreams.AwaitAttempts(t.Context(), jobrunner.UpstreamWait)
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
		{"boss", "POST", path, server("wiki", tools, ""), http.StatusOK, `"added"`},
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
		{"boss", "POST", path + "/wiki/restart", "", http.StatusOK, ""},
		{"boss", "POST", path + "/wiki/disable", "", http.StatusOK, `"removed"`},
		{"boss", "POST", path + "/wiki/restore", "", http.StatusOK, `"added"`},
		{"boss", "DELETE", path + "/near", "", http.StatusOK, `"removed":true`},
		{"root", "POST", path, server("more", tools, ""), http.StatusOK, `"added"`},
		{"root", "GET", "/api/v1/upstreams/fine", "", http.StatusOK, `"connected"`},
		{"root", "GET", "/api/v1/upstreams/fixed@acme", "", http.StatusOK, `"connected"`},
		{"boss", "GET", path, "", http.StatusOK, `"wiki"`},
	} {
		srv.upstreams.AwaitAttempts(t.Context(), jobrunner.UpstreamWait)
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
		srv.upstreams.AwaitAttempts(t.Context(), jobrunner.UpstreamWait)
		if _, text := httpjsontest.Read(t, http.MethodGet, url+"/api/v1/upstreams/near", "", header, value); !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
