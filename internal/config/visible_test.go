package config_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
)

// TestVisibleTo checks that nobody is shown what other organisations have, and only
// operators how everybody gets in.
func TestVisibleTo(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{Env: config.Environment{"WEB": "x"}, File: configtest.WriteFile(t, `
public_url = "https://hub.example"
read_only_tools = ["wiki@beta.find", "mail.find"]
[approvals]
"wiki@beta.put" = "all"
"mail.put" = "all"
[accepts]
"wiki@beta" = ["secret"]
[[policy]]
tool = "wiki@beta.*"
do = "deny"
[[policy]]
tool = "mail.send"
do = "deny"
[upstreams.mail]
url = "https://mail.example/mcp"
[keys.web]
env = "WEB"
org = "beta"
scopes = ["mcp"]
[identity.corp]
issuer = "https://login.example"
client_id = "hub"
roles = ["user"]
orgs = { staff = "beta" }
[hooks.push]
script = "push"
secret = "${env:HOOK}"
org = "beta"
[orgs.acme.quota]
calls = 4711
[orgs.beta.quota]
calls = 815
[[orgs.beta.policy]]
tool = "mail.*"
do = "deny"
[orgs.beta.upstreams.wiki]
url = "https://wiki.example/mcp"
`)})
	if err != nil {
		t.Fatal(err)
	}
	shownTo := func(org string, scopes ...principal.Scope) string {
		var out strings.Builder
		if err := loaded.VisibleTo(principal.Principal{ID: "key:x", Org: org, Scopes: scopes}).Show(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, org := range []string{"", "acme"} {
		text := shownTo(org, principal.Read)
		if strings.Contains(text, "beta") || strings.Contains(text, "815") || strings.Contains(text, "[identity") {
			t.Errorf("somebody of %q sees: %s", org, text)
		}
		for _, all := range []string{"[upstreams.mail]", "'mail.send'", "'mail.put'", "'mail.find'"} {
			if !strings.Contains(text, all) {
				t.Errorf("somebody of %q does not see %s: %s", org, all, text)
			}
		}
		if own := strings.Contains(text, "4711"); own != (org == "acme") {
			t.Errorf("somebody of %q sees the quota of acme: %v", org, own)
		}
	}
	for name, text := range map[string]string{"an administrator of beta": shownTo("beta", principal.Admin), "an operator": shownTo("", principal.Admin)} {
		for _, theirs := range []string{"815", "[[orgs.beta.policy]]", "[upstreams.'wiki@beta']", "[hooks.push]"} {
			if !strings.Contains(text, theirs) {
				t.Errorf("%s does not see %s: %s", name, theirs, text)
			}
		}
		if operator := name == "an operator"; strings.Contains(text, "[identity.corp]") != operator || strings.Contains(text, "4711") != operator {
			t.Errorf("%s sees: %s", name, text)
		}
	}
}
