package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/govern/audit"
)

// requestAs sends a request with a key and returns the status and the body.
func requestAs(t *testing.T, token, method, url, body string) (int, string) {
	t.Helper()
	name, value := httpjsontest.Bearer(token)
	answer, text := httpjsontest.Read(t, method, url, body, name, value)
	return answer.StatusCode, text
}

// TestAdministratorsAreAudited checks that the audit log has an entry for everything an
// administrator changes, with the caller and the node, wherever the request came from.
func TestAdministratorsAreAudited(t *testing.T) {
	t.Parallel()
	extra := serveTools(t, "extra", &shop{})
	startup := filepath.Join(t.TempDir(), "startup.lua")
	configtest.ReplaceFile(t, startup, "function startup() tools.mcp_add('started', '"+extra+"') end")
	base := "[mcp]\nallowed_hosts = [\"127.0.0.1\"]\n[keys.root]\nenv = \"ROOT\"\nscopes = [\"admin\"]\n[approvals]\n\"fine.buy\" = \"all\"\n[upstreams.fine]\nurl = \"" + serveTools(t, "fine", &shop{}) + "\"\n[upstreams.pinned]\ntrust = \"pin\"\nurl = \"" + serveTools(t, "pinned", &shop{}) + "\"\n"
	file := configtest.WriteFile(t, base)
	url, srv := start(t, config.Sources{
		File: file, Env: config.Environment{"ROOT": "root-token"},
		Flags: map[string]string{"node": "west", "scripts.startup": startup},
	})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	root := keyClient{t, url, "root-token"}
	do := func(status int, method, path, token, body string) string {
		t.Helper()
		got, text := requestAs(t, token, method, url+path, body)
		if got != status {
			t.Fatalf("%s %s: %d %s", method, path, got, text)
		}
		return text
	}
	do(http.StatusOK, http.MethodPost, "/api/v1/login", "", `{"key":"root-token"}`)
	do(http.StatusForbidden, http.MethodPost, "/api/v1/login", "", `{"key":"guess"}`)
	do(http.StatusCreated, http.MethodPost, "/api/v1/keys", "root-token", `{"name":"web"}`)
	do(http.StatusOK, http.MethodDelete, "/api/v1/keys/web", "root-token", ``)
	do(http.StatusOK, http.MethodPost, "/api/v1/pins/approve", "root-token", `{"upstream":"pinned"}`)
	root.call("mcp_connect", `{"namespace":"more","url":"`+extra+`"}`)
	root.call("mcp_disconnect", `{"namespace":"more"}`)
	root.call("lua_eval", `{"code":"tools.mcp_add('scripted', '`+extra+`')"}`)
	var asked struct {
		Result struct {
			StructuredContent struct {
				ID string `json:"approval_id"`
			}
			Meta json.RawMessage `json:"_meta"`
		}
	}
	answer := root.call("lua_eval", `{"code":"return mcp.fine.buy{}"}`)
	decodeMessage(t, answer, &asked)
	id := asked.Result.StructuredContent.ID
	if id == "" {
		_, after, _ := strings.Cut(answer, `approval_id":"`)
		id, _, _ = strings.Cut(after, `"`)
	}
	if text := root.call("approval_decide", `{"approval_id":"`+id+`","decision":"deny"}`); strings.Contains(text, `"isError":true`) {
		t.Fatalf("%s\n%s", answer, text)
	}
	configtest.ReplaceFile(t, file, base+"[[policy]]\ntool = \"pinned.buy\"\ndo = \"deny\"\n")
	clocktest.Await(t, func() bool { return len(srv.policy.Settings().Rules) == 1 })
	if err := srv.audit.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := srv.audit.Find(t.Context(), audit.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	logged := map[string]bool{}
	for _, e := range entries {
		logged[e.Action+" "+e.Subject+" "+e.Decision+" "+e.Who] = true
		if e.Node != "west" {
			t.Errorf("entry of node %q, want west: %+v", e.Node, e)
		}
	}
	for _, want := range []string{
		"login 127.0.0.1 allow key:root", "login 127.0.0.1 deny nobody",
		"key.created web allow key:root", "key.revoked web allow key:root",
		"pin.approved pinned.buy allow key:root",
		"upstream.add more allow key:root", "upstream.remove more allow key:root", "upstream.add scripted allow key:root",
		"startup.run " + startup + " allow local", "upstream.add started allow local",
		"approval.denied fine.buy allow key:root",
		"policy.change " + file + " allow local", "config.reload " + file + " allow local",
	} {
		if !logged[want] {
			t.Errorf("no entry %q", want)
		}
	}
	if t.Failed() {
		t.Logf("entries %q", slices.Sorted(maps.Keys(logged)))
	}
}

// TestChainsOfNodesVerify checks that two nodes on one database have a chain each, and
// that either of them verifies both.
func TestChainsOfNodesVerify(t *testing.T) {
	t.Parallel()
	database := tables.Postgres(t)
	var servers []*Server
	for _, name := range []string{"west", "east"} {
		url, srv := start(t, config.Sources{Env: config.Environment{"HOME": t.TempDir()}, Flags: map[string]string{"node": name, "database": database}})
		servers = append(servers, srv)
		connect(t, url).call("lua_eval", map[string]any{"code": "return 1"})
	}
	clocktest.Await(t, func() bool {
		chains, err := servers[0].audit.Chains(t.Context())
		return err == nil && len(chains) == 2
	})
	verified, err := servers[0].audit.Verify(t.Context())
	if err != nil || len(verified) != 2 || verified[0].Node != "east" || verified[1].Node != "west" {
		t.Fatalf("%+v %v", verified, err)
	}
	for _, v := range verified {
		if len(v.Problems) > 0 || v.Entries == 0 {
			t.Errorf("%+v", v)
		}
	}
}
