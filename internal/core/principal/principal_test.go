package principal_test

import (
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

func TestDefaultIsTheLocalOwner(t *testing.T) {
	t.Parallel()
	if p := principal.Of(t.Context()); p.ID != principal.LocalID || !p.Admin() || !p.May(principal.Admin, "") || !p.CanSee("fs", "read") || p.Restricted() {
		t.Errorf("without a principal: %+v", p)
	}
	ctx := principal.With(t.Context(), principal.Principal{ID: "key:web", Scopes: []principal.Scope{principal.Chat}})
	if p := principal.Of(ctx); p.ID != "key:web" || p.Admin() || p.May(principal.Admin, "") {
		t.Errorf("with one: %+v", p)
	}
	if (principal.Principal{Scopes: []principal.Scope{principal.Admin}, Org: "acme"}).Admin() {
		t.Error("the admin of one organisation is an admin of all")
	}
}

func TestSees(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spaces, tools []string
		space, name   string
		want          bool
	}{
		{nil, nil, "fs", "read", true},
		{[]string{"fs"}, nil, "fs", "read", true},
		{[]string{"fs"}, nil, "git", "log", false},
		{[]string{"fs"}, nil, "", "lua_eval", true},
		{[]string{"team-*"}, nil, "team-a", "read", true},
		{[]string{"team-*"}, nil, "fs", "read", false},
		{nil, []string{"fs.read_*"}, "fs", "read_file", true},
		{nil, []string{"fs.read_*"}, "fs", "write_file", false},
		{nil, []string{"fs.read_*"}, "", "lua_eval", false},
		{nil, []string{"fs.read_*"}, "fs", "", true},
		{nil, []string{"fs.read_*"}, "git", "", false},
		{nil, []string{"lua_*"}, "", "lua_eval", true},
		{nil, []string{"lua_*"}, "lua_x", "eval", false},
		{nil, []string{"*"}, "fs", "a/b", true},
		{nil, []string{"*.list*all"}, "fs", "list_them/all", true},
		{nil, []string{"*.list*all"}, "fs", "list_them_all_but_one", false},
		{nil, []string{"fs.a.b"}, "fs", "a.b", true},
		{[]string{"git"}, []string{"fs.*"}, "fs", "read", false},
	}
	for _, tt := range tests {
		p := principal.Principal{Namespaces: tt.spaces, Tools: tt.tools}
		if got := p.CanSee(tt.space, tt.name); got != tt.want {
			t.Errorf("namespaces %q, tools %q: %s.%s seen: %v", tt.spaces, tt.tools, tt.space, tt.name, got)
		}
	}
}
