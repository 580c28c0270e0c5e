package policy_test

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/policy"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestRulesOfOrganisations checks that the stricter of the server's rules and those of the
// caller's organisation counts, and that no organisation has the rules of another.
func TestRulesOfOrganisations(t *testing.T) {
	t.Parallel()
	p := open(t, dbtest.Open(t, dbtest.SQLite(t)), policy.Settings{
		Rules: []policy.Rule{{Tool: "git.erase", Do: policy.Deny}, {Tool: "git.push", Do: policy.Approve}, {Tool: "pay.*", Do: policy.Approve, By: "finance", Count: 1}},
		Orgs: map[string][]policy.Rule{"acme": {
			{Tool: "git.erase", Do: policy.Allow}, {Tool: "git.push", Do: policy.Approve, By: "staff", Count: 1}, {Tool: "git.tag", Do: policy.Deny},
			{Tool: "pay.*", Do: policy.Approve, By: "finance", Count: 2}, {Tool: "wiki.*", Do: policy.ReadOnly}, {Tool: "report", Do: policy.Approve}, {Tool: "http.*", Do: policy.Deny},
		}},
	})
	for _, tt := range []struct {
		org, tool string
		want      policy.Verdict
		rule      string
		count     int
	}{
		{"acme", "git.erase", policy.Deny, "policy 1 (deny git.erase)", 0},
		{"acme", "git.push", policy.Approve, "policy 2 (approve git.push)", 0},
		{"acme", "git.tag", policy.Deny, "policy 3 (deny git.tag) of the organisation acme", 0},
		{"acme", "git.log", policy.Allow, "", 0},
		{"acme", "pay.out", policy.Approve, "policy 3 (approve pay.*, by 1 with the role finance)", 2},
		{"acme", "wiki@acme.write", policy.Deny, "policy 5 (read_only wiki.*) of the organisation acme", 0},
		{"acme", "report@acme", policy.Approve, "policy 6 (approve report) of the organisation acme", 0},
		{"beta", "git.tag", policy.Allow, "", 0},
		{"beta", "report@beta", policy.Allow, "", 0},
		{"", "git.tag", policy.Allow, "", 0},
	} {
		who := principal.Principal{ID: "key:x", Name: "x", Org: tt.org}
		got := p.Decide(who, about(tt.tool, tool.Hints{}))
		if got.Verdict != tt.want || got.Rule != tt.rule || tt.count > 0 && got.Count != tt.count {
			t.Errorf("%s in %q: %+v", tt.tool, tt.org, got)
		}
		hides := p.Hides(who)
		if hidden := hides != nil && hides(about(tt.tool, tool.Hints{})); hidden != (tt.want == policy.Deny) {
			t.Errorf("%s in %q is hidden: %v", tt.tool, tt.org, hidden)
		}
		_, _, err := p.Admit(principal.With(t.Context(), who), about(tt.tool, tool.Hints{}), tool.Call{})
		if refused := fault.CodeOf(err) == fault.Denied; refused != (tt.want == policy.Deny) {
			t.Errorf("%s in %q: %v", tt.tool, tt.org, err)
		}
	}
	chat := principal.Principal{ID: "key:app", Name: "app", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}}
	if got := p.Decide(chat, about("git.tag", tool.Hints{})); got.Verdict != policy.Deny {
		t.Errorf("in a chat for somebody of the organisation: %+v", got)
	}
}
