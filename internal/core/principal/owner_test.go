package principal_test

import (
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

func TestSeesWhatBelongsToAnOwner(t *testing.T) {
	t.Parallel()
	scoped := func(id, org string, scopes ...principal.Scope) principal.Principal {
		return principal.Principal{ID: id, Org: org, Scopes: scopes}
	}
	inChat := principal.Principal{ID: "key:web", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}}
	owners := []principal.Owner{
		scoped("person:ada", "acme").Owner(), scoped("person:bob", "acme").Owner(), scoped("person:eve", "other").Owner(),
		principal.Local().Owner(), {}, inChat.Owner(),
	}
	for name, tt := range map[string]struct {
		who  principal.Principal
		sees [6]bool // ada's, bob's, eve's, the local owner's, the program's, ada's in a chat of the key web
	}{
		"the owner":                    {scoped("person:ada", "acme", principal.Read, principal.MCP), [6]bool{true}},
		"the owner in another org":     {scoped("person:ada", "other", principal.Read), [6]bool{}},
		"a key of no org":              {scoped("key:plain", "", principal.Read), [6]bool{}},
		"the key of the chat":          {scoped("key:web", "", principal.Chat), [6]bool{5: true}},
		"the chat":                     {inChat, [6]bool{5: true}},
		"another person of the chat":   {principal.Principal{ID: "key:web", Person: "acme/bob"}, [6]bool{}},
		"org":                          {scoped("key:acme", "acme", principal.Org), [6]bool{true, true, 5: true}},
		"an admin of the org":          {scoped("key:acme", "acme", principal.Admin), [6]bool{true, true, 5: true}},
		"observe of the org":           {scoped("key:acme", "acme", principal.Observe), [6]bool{true, true, 5: true}},
		"org without an organisation":  {scoped("key:all", "", principal.Org), [6]bool{}},
		"observe of all organisations": {scoped("key:all", "", principal.Observe), [6]bool{true, true, true, true, true, true}},
		"admin":                        {scoped("key:root", "", principal.Admin), [6]bool{true, true, true, true, true, true}},
		"the local owner":              {principal.Local(), [6]bool{true, true, true, true, true, true}},
		"nobody":                       {principal.Anonymous(), [6]bool{}},
	} {
		for i, o := range owners {
			if got := tt.who.Sees(o); got != tt.sees[i] {
				t.Errorf("%s, of %+v: %v", name, o, got)
			}
		}
	}
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	who := principal.Principal{ID: "person:ada", Org: "acme"}
	ctx := principal.With(t.Context(), who)
	if got := principal.OwnerOf(ctx); got != who.Owner() || !principal.Known(ctx) {
		t.Errorf("the owner is %+v", got)
	}
	if got := principal.OwnerOf(t.Context()); got != principal.Local().Owner() || principal.Known(t.Context()) {
		t.Errorf("without a principal the owner is %+v", got)
	}
}
