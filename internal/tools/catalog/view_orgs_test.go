package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/search"
)

// ofTwoOrgs is a catalog in which the server and two organisations have a github each, and
// one organisation a ledger.
func ofTwoOrgs() *catalog.Catalog {
	says := func(_ context.Context, call tool.Call) (tool.Result, error) {
		return tool.Result{}, fault.New(fault.Conflict, "%s answered", call.Ref)
	}
	m := newMemory()
	for _, space := range []string{"github", "github@acme", "github@beta"} {
		m = m.with(space, "issues", `{"type":"object"}`, says)
	}
	m = m.with("github", "archive", `{"type":"object"}`, says)
	m = m.with("ledger@beta", "entries", `{"type":"object"}`, says).with("wiki", "page", `{"type":"object"}`, says)
	c := catalog.New(catalog.Options{Sources: []tool.Source{m}})
	for _, space := range []string{"github", "github@acme", "github@beta", "ledger@beta", "wiki"} {
		c.Expose(space, catalog.Exposure{All: true})
	}
	c.Refresh(context.Background())
	return c
}

func in(ctx context.Context, org string, scopes ...principal.Scope) context.Context {
	return principal.With(ctx, principal.Principal{ID: "key:x", Name: "x", Org: org, Scopes: append(scopes, principal.MCP)})
}

// chatFor is a chat for somebody of an organisation, by a key of all organisations.
func chatFor(ctx context.Context, org string, scopes ...principal.Scope) context.Context {
	return principal.With(ctx, principal.Principal{ID: "key:app", Name: "app", Person: org + "/ada", Scopes: append(scopes, principal.Chat)})
}

// TestNamespacesOfOrganisations checks that members see the namespaces of their own
// organisation by plain names instead of the server's, and that nothing tells others that
// they exist.
func TestNamespacesOfOrganisations(t *testing.T) {
	t.Parallel()
	c := ofTwoOrgs()
	for org, want := range map[string]struct{ spaces, tools, reached, listed string }{
		"acme": {"[github wiki]", "[github.issues wiki.page]", "github.issues answered", "[github__issues wiki__page]"},
		"beta": {"[github ledger wiki]", "[github.issues ledger.entries wiki.page]", "github.issues answered", "[github__issues ledger__entries wiki__page]"},
		"":     {"[github wiki]", "[github.archive github.issues wiki.page]", "github.issues answered", "[github__archive github__issues wiki__page]"},
	} {
		callers := []context.Context{in(t.Context(), org, principal.Admin), chatFor(t.Context(), org), chatFor(t.Context(), org, principal.Admin)}
		if org == "" {
			callers = []context.Context{in(t.Context(), org), chatFor(t.Context(), "default"), chatFor(t.Context(), "default", principal.Admin)}
		}
		for _, ctx := range callers {
			tools, err := c.Tools(ctx)
			exposed, _ := c.Exposed().Tools(ctx)
			var listed []string
			for _, info := range exposed {
				listed = append(listed, info.Name)
			}
			if spaces := fmt.Sprint(c.Namespaces(ctx)); err != nil || spaces != want.spaces || fmt.Sprint(names(tools)) != want.tools || fmt.Sprint(listed) != want.listed {
				t.Errorf("in %q: %v, %v, %v, %v", org, spaces, names(tools), listed, err)
			}
			for _, name := range []string{"github.issues", "github__issues"} {
				info, err := c.Resolve(ctx, name)
				if err != nil || info.Ref != ref("github", "issues") {
					t.Errorf("in %q: %s is %v, %v", org, name, info.Ref, err)
				}
			}
			if _, err := c.Call(ctx, call("github", "issues", `{}`)); err == nil || err.Error() != want.reached {
				t.Errorf("in %q: %v", org, err)
			}
			if _, err := c.Exposed().Call(ctx, call("", "github__issues", `{}`)); err == nil || err.Error() != want.reached {
				t.Errorf("in %q: %v", org, err)
			}
		}
	}
}

// TestNamespacesOfOthers checks every way to a tool of another organisation.
func TestNamespacesOfOthers(t *testing.T) {
	t.Parallel()
	c := ofTwoOrgs()
	for _, who := range []context.Context{in(t.Context(), "acme", principal.Admin), in(t.Context(), "gamma"), in(t.Context(), ""), chatFor(t.Context(), "acme"), chatFor(t.Context(), "acme", principal.Admin)} {
		var texts []string
		tell := func(err error) {
			texts = append(texts, fmt.Sprint(err, fault.HintOf(err), string(fault.From(err).Details)))
		}
		for _, space := range []string{"ledger", "ledger@beta", "github@beta", "nothing@beta"} {
			_, err := c.Call(who, tool.Call{Ref: ref(space, "entries")})
			if wantFault(t, err, fault.ToolNotFound); !strings.Contains(err.Error(), "no namespace") {
				t.Errorf("%s: %v", space, err)
			}
			tell(err)
			if c.Exists(who, space) || space != "ledger" && c.Shows(who, ref(space, "entries")) || c.Check(who, tool.Call{Ref: ref(space, "entries")}) == nil {
				t.Errorf("%s exists", space)
			}
			if _, found := c.In(who, space); found {
				t.Errorf("%s is listed", space)
			}
			if _, found := c.Find(who, ref(space, "entries")); found {
				t.Errorf("%s is found", space)
			}
		}
		for _, name := range []string{"ledger__entries", "ledger_beta__entries", "ledger.entries", "mcp.ledger.entries", "entries", "ledgr.entries"} {
			_, err := c.Resolve(who, name)
			wantFault(t, err, fault.ToolNotFound)
			tell(err)
			_, err = c.Exposed().Call(who, call("", name, `{}`))
			wantFault(t, err, fault.ToolNotFound)
			tell(err)
		}
		hits, _ := c.Search(who, catalog.Query{Text: "ledger entries"})
		for _, hit := range hits {
			texts = append(texts, hit.Info.Ref.String())
		}
		for _, text := range texts {
			asked := strings.NewReplacer(`"ledger@beta.entries"`, "", `namespace "ledger@beta"`, "", `"github@beta.entries"`, "", `namespace "github@beta"`, "", `"nothing@beta.entries"`, "", `namespace "nothing@beta"`, "").Replace(text)
			if strings.Contains(asked, "@") {
				t.Errorf("it tells of others: %s", text)
			}
		}
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "did you mean ledger") }) {
			t.Error("it suggests what others have")
		}
	}
}

// TestAdministratorSeesAllOrganisations checks that the server's administrators see the
// namespaces of all, with their organisations.
func TestAdministratorSeesAllOrganisations(t *testing.T) {
	t.Parallel()
	c := ofTwoOrgs()
	ctx := in(t.Context(), "", principal.Admin)
	if spaces := fmt.Sprint(c.Namespaces(ctx)); spaces != "[github github@acme github@beta ledger@beta wiki]" {
		t.Error(spaces)
	}
	if _, err := c.Call(ctx, call("github@acme", "issues", `{}`)); err == nil || err.Error() != "github@acme.issues answered" {
		t.Error(err)
	}
}

// TestExposedNamesOfOrganisations checks that what is asked about an exposed name is
// answered for the tool that the caller's organisation has by it.
func TestExposedNamesOfOrganisations(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, space := range []string{"github", "github@acme", "github@beta"} {
		m = m.with(space, "issues", `{"type":"object","title":"`+space+`"}`, nil)
	}
	m = m.with("github@acme", "a.b", `{"title":"dot"}`, nil).with("github@acme", "a_b", `{"title":"line"}`, nil)
	m = m.with("", "report@acme", `{"title":"script"}`, nil).with("report@beta", "print", `{}`, nil)
	c := catalog.New(catalog.Options{Sources: []tool.Source{m}})
	for _, space := range []string{"github", "github@acme", "github@beta", "report@beta"} {
		c.Expose(space, catalog.Exposure{All: true})
	}
	c.Pin([]string{"github@acme.issues", "report@acme"})
	x := c.Exposed()
	for org, want := range map[string]struct {
		schema          string
		pinned, reports bool
	}{
		"acme": {"github@acme", true, false},
		"beta": {"github@beta", false, true},
		"":     {"github", false, false},
	} {
		ctx := in(t.Context(), org)
		listed, err := x.Tools(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, info := range listed {
			if schema, ok := x.InputSchema(ctx, info.Name); !ok || string(schema) != string(info.Input) || seen[info.Name] {
				t.Errorf("in %q: %s takes %s, listed with %s, twice %v", org, info.Name, schema, info.Input, seen[info.Name])
			}
			seen[info.Name] = true
		}
		schema, _ := x.InputSchema(ctx, "github__issues")
		if !strings.Contains(string(schema), `"`+want.schema+`"`) || x.Pinned(ctx, "github__issues") != want.pinned {
			t.Errorf("in %q: %s, pinned %v", org, schema, x.Pinned(ctx, "github__issues"))
		}
		if x.Namespace(ctx, "report") != "" || x.Pinned(ctx, "report") != (org == "acme") || (x.Namespace(ctx, "report__print") != "") != want.reports {
			t.Errorf("in %q: report is in %q, report__print in %q", org, x.Namespace(ctx, "report"), x.Namespace(ctx, "report__print"))
		}
	}
}

// TestSearchKnowsOrganisations checks that what is known of a namespace beyond its tools is
// used for that one, not for another that has its name elsewhere.
func TestSearchKnowsOrganisations(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, space := range []string{"tickets", "tickets@acme", "tickets@beta"} {
		m = m.with(space, "run", `{"type":"object"}`, nil)
	}
	c := catalog.New(catalog.Options{
		Sources: []tool.Source{m},
		Known: func(namespace string) catalog.Known {
			about := map[string]string{"tickets": "Violins.", "tickets@acme": "Trumpets.", "tickets@beta": "Drums."}[namespace]
			return catalog.Known{Context: search.Context{Server: about, Fields: func(ref tool.Ref) []string {
				return map[string][]string{"tickets": {"walrus"}, "tickets@acme": {"badger"}, "tickets@beta": {"falcon"}}[ref.Space]
			}}}
		},
	})
	words := map[string][]string{"": {"violins", "walrus"}, "acme": {"trumpets", "badger"}, "beta": {"drums", "falcon"}}
	for range 2 { // the indexes are used again
		for org := range words {
			for of, known := range words {
				for _, word := range known {
					if hits, _ := c.Search(in(t.Context(), org), catalog.Query{Text: word}); (len(hits) > 0) != (of == org) {
						t.Errorf("in %q: %s finds %d tools", org, word, len(hits))
					}
				}
			}
		}
	}
}
