package principal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

func TestMay(t *testing.T) {
	t.Parallel()
	who := map[string]principal.Principal{
		"root":       {Scopes: []principal.Scope{principal.Admin}},
		"web":        {Scopes: []principal.Scope{principal.Chat}},
		"agent":      {Scopes: []principal.Scope{principal.MCP}},
		"acme":       {Scopes: []principal.Scope{principal.Org}, Org: "acme"},
		"acme chat":  {Scopes: []principal.Scope{principal.Chat}, Org: "acme"},
		"acme admin": {Scopes: []principal.Scope{principal.Admin}, Org: "acme"},
		"monitor":    {Scopes: []principal.Scope{principal.Metrics}},
		"no org":     {Scopes: []principal.Scope{principal.Org}},
		"nobody":     principal.Anonymous(),
	}
	tests := []struct {
		who   string
		scope principal.Scope
		org   string
		want  bool
	}{
		{"root", principal.Admin, "", true},
		{"root", principal.Org, "acme", true},
		{"root", principal.MCP, "", true},
		{"web", principal.Chat, "acme", true},
		{"web", principal.Chat, "", true},
		{"web", principal.Admin, "", false},
		{"web", principal.Org, "acme", false},
		{"web", principal.MCP, "", false},
		{"agent", principal.MCP, "", true},
		{"agent", principal.Read, "", false},
		{"acme", principal.Org, "acme", true},
		{"acme", principal.Chat, "acme", true},
		{"acme", principal.Org, "other", false},
		{"acme", principal.Admin, "", false},
		{"acme", principal.MCP, "acme", false},
		{"acme chat", principal.Chat, "acme", true},
		{"acme chat", principal.Chat, "other", false},
		{"acme admin", principal.Org, "acme", true},
		{"acme admin", principal.Org, "other", false},
		{"acme admin", principal.Admin, "acme", false},
		{"no org", principal.Org, "", false},
		{"root", principal.Metrics, "", true},
		{"web", principal.Metrics, "", false},
		{"monitor", principal.Metrics, "", true},
		{"monitor", principal.Read, "", false},
		{"acme admin", principal.Metrics, "acme", false},
		{"nobody", principal.Read, "", false},
	}
	for _, tt := range tests {
		if got := who[tt.who].May(tt.scope, tt.org); got != tt.want {
			t.Errorf("%s, %s of %q: %v", tt.who, tt.scope, tt.org, got)
		}
	}
	for _, s := range principal.Scopes {
		if s.Description() == "" {
			t.Errorf("the scope %s has no description", s)
		}
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	web, root := principal.Principal{ID: "key:web"}, principal.Principal{ID: "key:root", Scopes: []principal.Scope{principal.Admin}}
	if !web.Owns("key:web") || web.Owns("key:other") || web.Owns("") || !root.Owns("key:web") || !principal.Local().Owns("") {
		t.Error("a principal owns what another one created, or does not own what it created")
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	err := principal.Exceeded{What: "requests", Of: "the key web", Most: 60, Per: "minute", After: 1200 * time.Millisecond}.Fault()
	if err.Error() != "the key web may have 60 requests a minute" || fault.HintOf(err) != "try again in 1s" {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
	after, ok := principal.RetryAfter(fault.Wrap(fault.Limit, err, "call fs.read"))
	if !ok || after != time.Second || principal.RetryHeader(1200*time.Millisecond) != "2" || principal.RetryHeader(0) != "1" {
		t.Errorf("retry after %v, %v", after, ok)
	}
	dollars := fault.New(fault.Limit, "the budget").WithDetails(map[string]any{"limit": 0.05, "used": 0.06, "retry_after_ms": 1500})
	if after, ok := principal.RetryAfter(dollars); !ok || after != 1500*time.Millisecond {
		t.Errorf("retry after %v, %v, with a limit that is not a whole number", after, ok)
	}
	if _, ok := principal.RetryAfter(fault.New(fault.Limit, "too big")); ok {
		t.Error("a limit without a retry time has one")
	}
}

// TestKeyScopes checks that the scopes that are shown are those that a key can have.
func TestKeyScopes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who  principal.Principal
		want []principal.Scope
	}{
		"root":       {principal.Principal{Scopes: []principal.Scope{principal.Admin}}, []principal.Scope{principal.Admin}},
		"acme admin": {principal.Principal{Org: "acme", Scopes: []principal.Scope{principal.Admin}}, []principal.Scope{principal.Org, principal.Chat, principal.MCP, principal.Read, principal.Observe}},
		"no org":     {principal.Principal{Scopes: []principal.Scope{principal.Org, principal.Read}}, []principal.Scope{principal.Read}},
		"acme":       {principal.Principal{Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Metrics}}, []principal.Scope{principal.MCP}},
	} {
		if got := tt.who.KeyScopes(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestManagesOrg checks who manages the organisation that a principal is for, and which
// organisations somebody manages.
func TestManagesOrg(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who           principal.Principal
		own           bool
		manages, lost string // an organisation that it manages, and one that it does not
	}{
		"root":          {principal.Local(), false, "acme", "a@b"},
		"scope org":     {principal.Principal{Org: "acme", Scopes: []principal.Scope{principal.Org}}, true, "acme", "beta"},
		"administrator": {principal.Principal{Org: "acme", Scopes: []principal.Scope{principal.Admin}}, true, "acme", "beta"},
		"in a chat":     {principal.Principal{Org: "acme", Person: "acme/ada", Scopes: []principal.Scope{principal.Org}}, false, "acme", "beta"},
		"member":        {principal.Principal{Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Chat}}, false, "", "acme"},
		"no org":        {principal.Principal{Scopes: []principal.Scope{principal.Org}}, false, "", "acme"},
	} {
		if got := tt.who.ManagesOrg(); got != tt.own {
			t.Errorf("%s: manages its own: %v", name, got)
		}
		if tt.manages != "" && tt.who.CheckManages(tt.manages) != nil {
			t.Errorf("%s does not manage %s", name, tt.manages)
		}
		if tt.who.CheckManages(tt.lost) == nil {
			t.Errorf("%s manages %s", name, tt.lost)
		}
	}
}
