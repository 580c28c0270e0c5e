package access_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fault"
)

func TestMay(t *testing.T) {
	t.Parallel()
	who := map[string]access.Principal{
		"root":       {Scopes: []access.Scope{access.Admin}},
		"web":        {Scopes: []access.Scope{access.Chat}},
		"agent":      {Scopes: []access.Scope{access.MCP}},
		"acme":       {Scopes: []access.Scope{access.Org}, Org: "acme"},
		"acme chat":  {Scopes: []access.Scope{access.Chat}, Org: "acme"},
		"acme admin": {Scopes: []access.Scope{access.Admin}, Org: "acme"},
		"nobody's":   {Scopes: []access.Scope{access.Org}},
		"nobody":     access.Nobody(),
	}
	tests := []struct {
		who   string
		scope access.Scope
		org   string
		want  bool
	}{
		{"root", access.Admin, "", true},
		{"root", access.Org, "acme", true},
		{"root", access.MCP, "", true},
		{"web", access.Chat, "acme", true},
		{"web", access.Chat, "", true},
		{"web", access.Admin, "", false},
		{"web", access.Org, "acme", false},
		{"web", access.MCP, "", false},
		{"agent", access.MCP, "", true},
		{"agent", access.Read, "", false},
		{"acme", access.Org, "acme", true},
		{"acme", access.Chat, "acme", true},
		{"acme", access.Org, "other", false},
		{"acme", access.Admin, "", false},
		{"acme", access.MCP, "acme", false},
		{"acme chat", access.Chat, "acme", true},
		{"acme chat", access.Chat, "other", false},
		{"acme admin", access.Org, "acme", true},
		{"acme admin", access.Org, "other", false},
		{"acme admin", access.Admin, "acme", false},
		{"nobody's", access.Org, "", false},
		{"nobody", access.Read, "", false},
	}
	for _, tt := range tests {
		if got := who[tt.who].May(tt.scope, tt.org); got != tt.want {
			t.Errorf("%s, %s of %q: %v", tt.who, tt.scope, tt.org, got)
		}
	}
	for _, s := range access.Scopes {
		if s.Opens() == "" {
			t.Errorf("nobody knows what %s opens", s)
		}
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	web, root := access.Principal{ID: "key:web"}, access.Principal{ID: "key:root", Scopes: []access.Scope{access.Admin}}
	if !web.Owns("key:web") || web.Owns("key:other") || web.Owns("") || !root.Owns("key:web") || !access.Local().Owns("") {
		t.Error("things belong to others than their makers")
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	err := access.Exceeded{What: "requests", Of: "the key web", Most: 60, Per: "minute", After: 1200 * time.Millisecond}.Fault()
	if err.Error() != "the key web may have 60 requests a minute" || fault.HintOf(err) != "try again in 1s" {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
	after, ok := access.RetryAfter(fault.Wrap(fault.Limit, err, "call fs.read"))
	if !ok || after != time.Second || access.RetryHeader(1200*time.Millisecond) != "2" || access.RetryHeader(0) != "1" {
		t.Errorf("retry after %v, %v", after, ok)
	}
	if _, ok := access.RetryAfter(fault.New(fault.Limit, "too big")); ok {
		t.Error("a limit without a time has one")
	}
}
