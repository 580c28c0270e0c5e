package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/govern/audit"
)

// TestPolicyOfAnOrganisationChanges changes the rules of an organisation while the server
// runs: the next call of its members is refused, also in a script that runs already, and
// nobody else's. A file that cannot be read changes nothing.
func TestPolicyOfAnOrganisationChanges(t *testing.T) {
	t.Parallel()
	fine := &shop{release: make(chan struct{})}
	text := "[keys.acme]\nenv = \"ACME\"\norg = \"acme\"\nscopes = [\"mcp\"]\n[keys.beta]\nenv = \"BETA\"\norg = \"beta\"\nscopes = [\"mcp\"]\n" +
		"[keys.plain]\nenv = \"PLAIN\"\nscopes = [\"mcp\"]\n[upstreams.fine]\nurl = \"" + serveTools(t, "fine", fine) + "\"\n"
	file := configtest.WriteFile(t, text)
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"ACME": "acme-token", "BETA": "beta-token", "PLAIN": "plain-token"}})
	srv.upstreams.AwaitAttempts(t.Context(), clocktest.Timeout)
	srv.catalog.Refresh(t.Context())
	change := func(rules string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+rules), 0o600); err != nil {
			t.Fatal(err)
		}
		srv.Reload(t.Context())
	}
	answers := make(chan string, 1)
	go func() { // its first call is allowed, and waits
		answers <- keyClient{t, url, "acme-token"}.call("lua_eval", `{"code":"mcp.fine.buy{} return mcp.fine.buy{}"}`)
	}()
	clocktest.Await(t, func() bool { _, inside, _ := fine.counts(); return inside == 1 })
	change("[[orgs.acme.policy]]\ntool = \"fine.*\"\ndo = \"deny\"\n")
	close(fine.release)
	const refused = "policy 1 (deny fine.*) of the organisation acme"
	if text := <-answers; !strings.Contains(text, refused) {
		t.Errorf("the second call of a script that runs: %.600s", text)
	}
	check := func(when string, allowed map[string]bool) {
		t.Helper()
		for token, want := range allowed {
			text := keyClient{t, url, token}.call("call_tool", `{"name":"fine.buy"}`)
			if sold := strings.Contains(text, "sold"); sold != want || !sold && !strings.Contains(text, "not allowed") {
				t.Errorf("%s: a call of %s: %.600s", when, token, text)
			}
		}
	}
	check("a rule", map[string]bool{"acme-token": false, "beta-token": true, "plain-token": true})
	change("[[orgs.beta.policy]]\ntool = \"fine.*\"\n")
	check("a broken file", map[string]bool{"acme-token": false, "beta-token": true, "plain-token": true})
	change("[[orgs.beta.policy]]\ntool = \"fine.buy\"\ndo = \"deny\"\n")
	check("a rule of another organisation", map[string]bool{"acme-token": true, "beta-token": false, "plain-token": true})
	change("")
	check("no rules", map[string]bool{"acme-token": true, "beta-token": true, "plain-token": true})
	if err := srv.audit.Close(t.Context()); err != nil { // writes what is buffered
		t.Fatal(err)
	}
	entries, err := srv.audit.Find(t.Context(), audit.Filter{})
	entries = slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Action != "policy.change" })
	if err != nil || len(entries) != 3 {
		t.Errorf("changes in the audit log: %+v, %v", entries, err)
	}
}
