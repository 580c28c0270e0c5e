package publish

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// member is a key of an organisation, or of none.
func member(ctx context.Context, key, org string, scopes ...principal.Scope) context.Context {
	return principal.With(ctx, principal.Principal{ID: "key:" + key, Name: key, Org: org, Scopes: append(scopes, principal.MCP)})
}

// publishAs publishes a script that answers with a word.
func (p publishFixture) publishAs(ctx context.Context, name, answer string) (Version, error) {
	return p.Publish(ctx, Request{Hash: p.sources.put(named(name, answer)), Publisher: principal.Of(ctx).ID})
}

// answer calls a tool and returns what its script says, or the error.
func (p publishFixture) answer(ctx context.Context, name string) string {
	result, err := p.catalog.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: []byte(`{}`)})
	if err != nil {
		return string(fault.CodeOf(err))
	}
	view, _ := result.View()
	return string(view.Structured)
}

// TestScriptsOfOrganisations has the server and two organisations publish a script of the
// same name. Each has its own versions, and members see theirs instead of the server's.
func TestScriptsOfOrganisations(t *testing.T) {
	t.Parallel()
	folder, sources := t.TempDir(), newSourceStore()
	p := openPublished(t, folder, sources)
	acme, beta, gamma := member(t.Context(), "a", "acme"), member(t.Context(), "b", "beta"), member(t.Context(), "g", "gamma")
	for _, one := range []struct {
		ctx    context.Context
		answer string
		want   string
	}{{t.Context(), "server", "report 1"}, {acme, "acme", "report@acme 1"}, {beta, "beta", "report@beta 1"}, {beta, "better", "report@beta 2"}} {
		if v, err := p.publishAs(one.ctx, "report", one.answer); err != nil || fmt.Sprint(v.Name, " ", v.Version) != one.want {
			t.Fatalf("published %v %v, %v", v.Name, v.Version, err)
		}
	}
	check := func(p publishFixture) {
		t.Helper()
		for answer, ctx := range map[string]context.Context{"acme": acme, "better": beta, "server": gamma} {
			if got := p.answer(ctx, "report"); got != `{"answer":"`+answer+`","n":1}` {
				t.Errorf("%s gets %s", answer, got)
			}
			tools, _ := p.catalog.In(ctx, "")
			if listed := fmt.Sprint(namesOf(tools)); listed != "[report]" {
				t.Errorf("%s lists %s", answer, listed)
			}
			if found, ok := p.Script(ctx, "report"); !ok || found.Name != "report" || !strings.Contains(found.Source, answer) {
				t.Errorf("%s finds %+v", answer, found)
			}
			if current := p.Current(ctx); len(current) != 1 || current[sources.put(named("report", answer))].Name != "report" {
				t.Errorf("%s has %+v", answer, current)
			}
		}
		if versions, err := p.History(beta, "report"); err != nil || len(versions) != 2 || !versions[0].Current {
			t.Errorf("versions of beta %+v, %v", versions, err)
		}
		if versions, err := p.History(gamma, "report"); err != nil || len(versions) != 1 {
			t.Errorf("versions of the server %+v, %v", versions, err)
		}
	}
	check(p)
	check(openPublished(t, folder, sources)) // after a restart

	tools, _ := p.catalog.In(t.Context(), "") // an administrator
	if listed := fmt.Sprint(namesOf(tools)); listed != "[report report@acme report@beta]" {
		t.Errorf("an administrator lists %s", listed)
	}
	if got := p.answer(t.Context(), "report@acme"); got != `{"answer":"acme","n":1}` {
		t.Errorf("an administrator gets %s", got)
	}
	if removed, err := p.Unpublish(acme, "report"); err != nil || !removed || p.answer(acme, "report") != `{"answer":"server","n":1}` {
		t.Errorf("withdrawn %v, %v; then %s", removed, err, p.answer(acme, "report"))
	}
}

func namesOf(tools []tool.Info) (names []string) {
	for i := range tools {
		names = append(names, tools[i].Name)
	}
	return names
}

// TestScriptsOfOtherOrganisations tries every way to a script of another organisation.
func TestScriptsOfOtherOrganisations(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	beta := member(t.Context(), "b", "beta")
	if _, err := p.publishAs(beta, "ledger", "secret"); err != nil {
		t.Fatal(err)
	}
	chat := principal.With(t.Context(), principal.Principal{ID: "key:app", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}})
	for title, ctx := range map[string]context.Context{
		"a member": member(t.Context(), "a", "acme"), "an administrator of another": member(t.Context(), "a", "acme", principal.Admin),
		"no organisation": member(t.Context(), "x", ""), "a chat": chat,
	} {
		var told []string
		tell := func(err error) {
			told = append(told, fmt.Sprint(err, fault.HintOf(err), string(fault.From(err).Details)))
		}
		for _, name := range []string{"ledger", "ledger@beta", "ledger_beta", "mcp.ledger", "ledgr"} {
			if got := p.answer(ctx, name); got != string(fault.ToolNotFound) {
				t.Errorf("%s calls %s: %s", title, name, got)
			}
			_, err := p.catalog.Resolve(ctx, name)
			tell(err)
			_, err = p.catalog.Exposed().Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: []byte(`{}`)})
			tell(err)
			_, err = p.History(ctx, name)
			tell(err)
			if removed, err := p.Unpublish(ctx, name); removed || err != nil {
				t.Errorf("%s withdraws %s: %v, %v", title, name, removed, err)
			}
			if _, found := p.Script(ctx, name); found {
				t.Errorf("%s finds %s", title, name)
			}
			for _, text := range told {
				if shown := strings.ReplaceAll(text, fmt.Sprintf("%q", strings.TrimPrefix(name, "mcp.")), ""); strings.Contains(strings.ReplaceAll(shown, `"`+name+`"`, ""), "ledger") {
					t.Errorf("%s is told: %s", title, text)
				}
			}
			told = nil
		}
		if _, err := p.Published.Call(ctx, tool.Call{Ref: tool.Ref{Name: "ledger@beta"}}); fault.CodeOf(err) != fault.ToolNotFound {
			t.Errorf("%s calls the source: %v", title, err)
		}
		if hits, _ := p.catalog.Search(ctx, catalog.Query{Text: "ledger says secret"}); len(hits) > 0 {
			t.Errorf("%s finds %v", title, hits[0].Ref)
		}
		exposed, _ := p.catalog.Exposed().Tools(ctx)
		if all, _ := p.catalog.In(ctx, ""); len(all)+len(p.Current(ctx))+len(exposed) > 0 {
			t.Errorf("%s lists %v, %v", title, namesOf(all), namesOf(exposed))
		}
		if _, err := p.Publish(ctx, Request{Hash: p.sources.put(named("x", "y")), Name: "ledger@beta"}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s publishes into another: %v", title, err)
		}
	}
	if exposed, _ := p.catalog.Exposed().Tools(beta); len(exposed) != 1 || exposed[0].Name != "ledger" || !strings.Contains(string(exposed[0].Raw), `"name":"ledger"`) {
		t.Errorf("members are shown %v", exposed)
	}
}

// TestWhoChangesAScriptOfAnOrganisation checks that its publisher does, and administrators
// of the organisation, but no other member.
func TestWhoChangesAScriptOfAnOrganisation(t *testing.T) {
	t.Parallel()
	p := openPublished(t, t.TempDir(), newSourceStore())
	ada := member(t.Context(), "ada", "acme")
	events := map[string]*event.Subscription{}
	for org, ctx := range map[string]context.Context{"acme": member(t.Context(), "z", "acme"), "beta": member(t.Context(), "b", "beta"), "": t.Context()} {
		events[org] = p.bus.SubscribeAs(principal.Of(ctx), event.Options{Types: []string{"script.published"}})
		defer events[org].Close()
	}
	if _, err := p.publishAs(ada, "report", "one"); err != nil {
		t.Fatal(err)
	}
	_, err := p.publishAs(member(t.Context(), "bob", "acme"), "report", "two")
	if fault.CodeOf(err) != fault.Denied || strings.Contains(err.Error(), "@") {
		t.Errorf("another member replaces it: %v", err)
	}
	for _, ctx := range []context.Context{ada, member(t.Context(), "head", "acme", principal.Admin), t.Context()} {
		name := "report"
		if principal.Of(ctx).Admin() {
			name = "report@acme"
		}
		if removed, err := p.Unpublish(ctx, name); err != nil || !removed {
			t.Errorf("%s: %v, %v", principal.Of(ctx).ID, removed, err)
		}
		if _, err := p.publishAs(ada, "report", "one"); err != nil {
			t.Error(err)
		}
	}
	for org, want := range map[string]int{"acme": 7, "beta": 0, "": 7} {
		got := 0
		for _, ok := events[org].Poll(); ok; _, ok = events[org].Poll() {
			got++
		}
		if got != want {
			t.Errorf("%d events about it in %q, want %d", got, org, want)
		}
	}
}
