package offers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// peer is an upstream with the lists of the map, by method. It records what it is asked for.
type peer struct {
	hub.Peer
	lists map[string][]string

	mu      sync.Mutex
	asked   []string
	notify  func(method string, params json.RawMessage)
	watched int
}

func (p *peer) Listed(_ context.Context, method string) (items []json.RawMessage) {
	for _, folder := range p.lists[wire.MethodSkillsList] {
		if method == wire.MethodSkillsList {
			items = append(items, json.RawMessage(entryOf(folder)))
		}
	}
	if method == wire.MethodSkillsList {
		return items
	}
	key := map[string]string{wire.MethodPromptsList: "name", wire.MethodResourcesList: "uri", wire.MethodResourceTemplates: "uriTemplate"}[method]
	for _, id := range p.lists[method] {
		items = append(items, rawjson.SetText(json.RawMessage(`{"x":1}`), key, id))
	}
	return items
}

func (p *peer) Request(_ context.Context, method string, params json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, method+" "+string(params))
	if method == wire.MethodResourcesRead {
		uri, _ := rawjson.GetText(params, "uri")
		return json.RawMessage(`{"contents":[{"uri":"` + uri + `","text":"t"},{"uri":"other://x","text":"o"}]}`), nil
	}
	if method == wire.MethodSkillsGet {
		uri, _ := rawjson.GetText(params, "uri")
		return json.RawMessage(`{"skill":` + entryOf(skills.Root(uri)) + `}`), nil
	}
	return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"resource_link","uri":"linked://prompt"}}]}`), nil
}

func (p *peer) Watch(notify func(string, json.RawMessage)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
	p.watched++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watched--
	}
}

// last is the last request, which is forgotten.
func (p *peer) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return ""
	}
	last := p.asked[len(p.asked)-1]
	p.asked = nil
	return last
}

type peers map[string]*peer

func (p peers) Peer(_ context.Context, name string) (hub.Peer, bool) {
	one, ok := p[name]
	return one, ok
}
func (p peers) Owner(context.Context, string) string { return "" }
func (p peers) Has(name string) bool                 { return p[name] != nil }
func (p peers) Namespaces() []string                 { return slices.Sorted(maps.Keys(p)) }
func (peers) RootsChanged(tool.Client)               {}

// ours is what we offer ourselves.
type ours struct{}

func (ours) ListResources(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"uri":"lua://tools"}`)}, nil
}

func (ours) ListTemplates(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"uriTemplate":"lua://jobs/{id}"}`)}, nil
}

func (ours) ReadResource(_ context.Context, uri string, _ *tool.Caller) (json.RawMessage, error) {
	return json.RawMessage(`{"ours":"` + uri + `"}`), nil
}

func (ours) ListSkills(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(entryOf("skill://luanette/using"))}, nil
}

func (ours) ReadSkill(_ context.Context, uri string) (json.RawMessage, error) {
	return json.RawMessage(`{"ours":"` + uri + `"}`), nil
}

func (ours) ListPrompts(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"name":"write"}`)}, nil
}

func (ours) GetPrompt(_ context.Context, name string, _ json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	return json.RawMessage(`{"ours":"` + name + `"}`), nil
}

func (ours) Complete(context.Context, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"ours":true}`), nil
}

func join(p peers) (*offers.Offers, *offers.Links) {
	links := &offers.Links{}
	return offers.New(offers.Options{Resources: ours{}, Prompts: ours{}, Completer: ours{}, Skills: ours{}, Upstreams: p, Links: links}), links
}

// entryOf is the entry of a skill in a folder, with two files.
func entryOf(folder string) string {
	raw, _ := json.Marshal(skills.Skill{
		URI: folder + "/SKILL.md", Frontmatter: json.RawMessage(`{"name":"` + path.Base(folder) + `","description":"Does it."}`),
		Files: []skills.File{skills.NewFile(folder+"/SKILL.md", []byte("main")), skills.NewFile(folder+"/scripts/run.py", nil)},
	})
	return string(raw)
}

func twoShelves() peers {
	return peers{
		"alpha": {lists: map[string][]string{
			wire.MethodResourcesList: {"doc://1", "ui://page.html"}, wire.MethodResourceTemplates: {"doc://{n}", "both://{n}", "wide://{n}"}, wire.MethodPromptsList: {"review", "write up"},
		}},
		"beta": {lists: map[string][]string{
			wire.MethodResourcesList: {"doc://1", "ui://page.html", "mail://inbox", "lua://tools"}, wire.MethodResourceTemplates: {"mail://{folder}/{id}", "both://{n}", "wide://{+path}"},
			wire.MethodPromptsList: {"review", strings.Repeat("long", 20)},
		}},
	}
}

func shown(t *testing.T, o *offers.Offers, ctx context.Context, method string) (names []string) {
	t.Helper()
	entries, err := o.Entries(ctx, method)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Shown)
	}
	return names
}

const ownSkill = "skill://luanette/using/SKILL.md"

func TestNames(t *testing.T) {
	t.Parallel()
	o, _ := join(twoShelves())
	want := []string{"lua://tools", ownSkill, "doc://1", "ui://page.html", "beta+doc://1", "ui://beta+page.html", "mail://inbox", "beta+lua://tools"}
	if got := shown(t, o, t.Context(), wire.MethodResourcesList); !slices.Equal(got, want) {
		t.Errorf("resources: %q", got)
	}
	prompts := shown(t, o, t.Context(), wire.MethodPromptsList)
	if !slices.Equal(prompts[:4], []string{"write", "alpha__review", "alpha__write_up", "beta__review"}) || len(prompts[4]) > 48 || !strings.HasPrefix(prompts[4], "beta__") {
		t.Errorf("prompts: %q", prompts)
	}
	list, _ := o.List(t.Context(), wire.MethodPromptsList)
	if got := string(list[1]); got != `{"x":1,"name":"alpha__review","title":"review"}` {
		t.Errorf("a prompt is listed as %s", got)
	}
	one := principal.With(t.Context(), principal.Principal{ID: "key:k", Scopes: []principal.Scope{principal.MCP}, Namespaces: []string{"beta"}})
	if got := shown(t, o, one, wire.MethodResourcesList); !slices.Equal(got, []string{"lua://tools", ownSkill, "doc://1", "ui://page.html", "mail://inbox", "beta+lua://tools"}) {
		t.Errorf("who sees beta alone has %q", got)
	}
}

// TestWhoIsAsked checks where requests go, and under which name.
func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	all := twoShelves()
	o, links := join(all)
	note := links.NoteCalls().After
	note(t.Context(), &tool.Invocation{
		Call:   tool.Call{Ref: tool.Ref{Space: "beta", Name: "find"}},
		Result: tool.Result{Raw: json.RawMessage(`{"content":[{"type":"resource_link","uri":"https://x.example/1"},{"type":"resource","resource":{"uri":"made://up"}},{"type":"text","uri":"not://this"}]}`)},
	})
	long := shown(t, o, t.Context(), wire.MethodPromptsList)[4]
	for _, c := range []struct{ method, params, server, want string }{
		{wire.MethodResourcesRead, `{"uri":"doc://1"}`, "alpha", `{"uri":"doc://1"}`},
		{wire.MethodResourcesRead, `{"uri":"beta+doc://1","_meta":{"k":1}}`, "beta", `{"uri":"doc://1","_meta":{"k":1}}`},
		{wire.MethodResourcesRead, `{"uri":"alpha+doc://1"}`, "alpha", `{"uri":"doc://1"}`},
		{wire.MethodResourcesRead, `{"uri":"ui://beta+page.html"}`, "beta", `{"uri":"ui://page.html"}`},
		{wire.MethodResourcesRead, `{"uri":"doc://77"}`, "alpha", `{"uri":"doc://77"}`}, // its template
		{wire.MethodResourcesRead, `{"uri":"both://1"}`, "alpha", `{"uri":"both://1"}`}, // listed without its name
		{wire.MethodResourcesRead, `{"uri":"beta+both://1"}`, "beta", `{"uri":"both://1"}`},
		{wire.MethodResourcesRead, `{"uri":"mail://a/b/c"}`, "beta", `{"uri":"mail://a/b/c"}`},               // its scheme
		{wire.MethodResourcesRead, `{"uri":"https://x.example/1"}`, "beta", `{"uri":"https://x.example/1"}`}, // it linked to it
		{wire.MethodResourcesRead, `{"uri":"made://up"}`, "beta", `{"uri":"made://up"}`},
		{wire.MethodPromptsGet, `{"name":"beta__review","arguments":{"a":"1"}}`, "beta", `{"name":"review","arguments":{"a":"1"}}`},
		{wire.MethodPromptsGet, `{"name":"alpha__write_up"}`, "alpha", `{"name":"write up"}`},
		{wire.MethodPromptsGet, `{"name":"` + long + `"}`, "beta", `{"name":"` + strings.Repeat("long", 20) + `"}`},
		{wire.MethodPromptsGet, `{"name":"alpha__unlisted"}`, "alpha", `{"name":"unlisted"}`},
		{wire.MethodResourcesRead, `{"uri":"linked://prompt"}`, "alpha", `{"uri":"linked://prompt"}`},
		{wire.MethodComplete, `{"ref":{"type":"ref/prompt","name":"alpha__review"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"1"}}}`, "alpha",
			`{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"1"}}}`},
		{wire.MethodComplete, `{"ref":{"type":"ref/resource","uri":"mail://{folder}/{id}"},"argument":{"name":"id","value":"1"}}`, "beta",
			`{"ref":{"type":"ref/resource","uri":"mail://{folder}/{id}"},"argument":{"name":"id","value":"1"}}`},
	} {
		_, err := o.Request(t.Context(), c.method, json.RawMessage(c.params), nil)
		if got := all[c.server].last(); err != nil || got != c.method+" "+c.want {
			t.Errorf("%s %s: %s was asked %q, %v", c.method, c.params, c.server, got, err)
		}
	}
	for _, one := range all {
		if got := one.last(); got != "" {
			t.Errorf("another server was asked %q", got)
		}
	}
}

func TestOwnAndUnknown(t *testing.T) {
	t.Parallel()
	o, _ := join(twoShelves())
	for method, params := range map[string]string{
		wire.MethodResourcesRead: `{"uri":"lua://jobs/1"}`, wire.MethodPromptsGet: `{"name":"write"}`,
		wire.MethodComplete: `{"ref":{"type":"ref/prompt","name":"write"},"argument":{"name":"a","value":""}}`,
	} {
		if got, err := o.Request(t.Context(), method, json.RawMessage(params), nil); err != nil || !strings.Contains(string(got), `"ours"`) {
			t.Errorf("%s: %s, %v", method, got, err)
		}
	}
	for uri, hint := range map[string]string{
		"wide://1": "alpha+wide://1, beta+wide://1", "https://x.example/1": "available: ", "file:///etc/passwd": "",
	} {
		_, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"`+uri+`"}`), nil)
		if fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.HintOf(err), hint) {
			t.Errorf("%s: %v, %s", uri, err, fault.HintOf(err))
		}
	}
	if _, err := o.Request(t.Context(), wire.MethodPromptsGet, json.RawMessage(`{"name":"alpha_review"}`), nil); !strings.Contains(fault.HintOf(err), "alpha__review") {
		t.Errorf("a misspelt prompt: %v, %s", err, fault.HintOf(err))
	}
}

// TestLinksOfOthers checks that a link that one caller was given says nothing to another.
func TestLinksOfOthers(t *testing.T) {
	t.Parallel()
	o, links := join(twoShelves())
	ann := principal.With(t.Context(), principal.Principal{ID: "person:ann", Scopes: []principal.Scope{principal.MCP}})
	links.NoteCalls().After(ann, &tool.Invocation{
		Call:   tool.Call{Ref: tool.Ref{Space: "beta", Name: "find"}},
		Result: tool.Result{Raw: json.RawMessage(`{"content":[{"type":"resource_link","uri":"made://up"}]}`)},
	})
	bob := principal.With(t.Context(), principal.Principal{ID: "person:bob", Scopes: []principal.Scope{principal.MCP}})
	for ctx, found := range map[context.Context]bool{ann: true, bob: false} {
		if _, err := o.Request(ctx, wire.MethodResourcesRead, json.RawMessage(`{"uri":"made://up"}`), nil); (err == nil) != found {
			t.Errorf("%s: %v", principal.Of(ctx).ID, err)
		}
	}
}

func TestContentsHaveTheNameThatWasAskedFor(t *testing.T) {
	t.Parallel()
	o, _ := join(twoShelves())
	got, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"beta+doc://1"}`), nil)
	if want := `{"contents":[{"uri":"beta+doc://1","text":"t"},{"uri":"other://x","text":"o"}]}`; err != nil || string(got) != want {
		t.Errorf("read %s, %v", got, err)
	}
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	all := twoShelves()
	o, _ := join(all)
	var told []string
	stop := o.Changes(func(hub.Notify) func() { return func() {} })(func(method string, params json.RawMessage, to func(principal.Principal) bool) {
		for _, id := range []string{"ann", "bob"} {
			if to(principal.Principal{ID: "person:" + id}) {
				told = append(told, fmt.Sprintf("%s %s %s", id, method, params))
			}
		}
	})
	defer stop()
	subscribe := func(who, uri string) (release func()) {
		ctx := principal.With(t.Context(), principal.Principal{ID: "person:" + who, Scopes: []principal.Scope{principal.MCP}})
		release, err := o.Subscribe(ctx, uri)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	releases := []func(){subscribe("ann", "beta+doc://1"), subscribe("ann", "beta+doc://1"), subscribe("bob", "doc://1"), subscribe("bob", "mail://inbox"), subscribe("ann", "lua://tools")}
	all["beta"].notify(wire.NoteResourceUpdated, json.RawMessage(`{"uri":"doc://1"}`))
	if want := []string{`ann notifications/resources/updated {"uri":"beta+doc://1"}`}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	for _, release := range releases {
		release()
	}
	o.Close()
	if all["beta"].watched != 0 || all["alpha"].watched != 0 || !strings.HasPrefix(all["beta"].last(), wire.MethodUnsubscribe) {
		t.Errorf("still watched: %d, %d", all["alpha"].watched, all["beta"].watched)
	}
}

// TestPages checks whose a page is that no server lists, and which two servers have.
func TestPages(t *testing.T) {
	t.Parallel()
	all := twoShelves()
	o, _ := join(all)
	o.Pages = func(context.Context) []offers.Page {
		return []offers.Page{{"alpha", "ui://unlisted"}, {"beta", "ui://page.html"}, {"beta", "ui://unlisted"}, {"beta", "ui://own"}, {"hidden", "ui://other"}}
	}
	if got := shown(t, o, t.Context(), wire.MethodResourcesList); slices.ContainsFunc(got, func(uri string) bool { return strings.Contains(uri, "unlisted") }) {
		t.Errorf("resources: %q", got)
	}
	for uri, want := range map[string]struct{ server, asked string }{
		"ui://unlisted": {"alpha", "ui://unlisted"}, "ui://beta+unlisted": {"beta", "ui://unlisted"}, "ui://own": {"beta", "ui://own"}, "ui://beta+page.html": {"beta", "ui://page.html"},
	} {
		_, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"`+uri+`"}`), nil)
		if got := all[want.server].last(); err != nil || got != wire.MethodResourcesRead+` {"uri":"`+want.asked+`"}` {
			t.Errorf("%s: %s was asked %q, %v", uri, want.server, got, err)
		}
	}
	for _, uri := range []string{"ui://other", "ui://nobody"} {
		if _, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"`+uri+`"}`), nil); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestSkills checks that the skills of a server are in a folder of its name, with all files, and
// that both forms lead to it.
func TestSkills(t *testing.T) {
	t.Parallel()
	all := twoShelves()
	all["alpha"].lists[wire.MethodSkillsList] = []string{"skill://refunds", "github://a/b/review"}
	all["beta"].lists[wire.MethodSkillsList] = []string{"skill://refunds", "skill://beta/own", "skill://alpha/own", "skill://gamma/x"}
	o, _ := join(all)
	want := []string{ownSkill, "skill://alpha/refunds/SKILL.md", "github://a/b/review/SKILL.md", "skill://beta/refunds/SKILL.md", "skill://beta/beta/own/SKILL.md", "skill://beta/alpha/own/SKILL.md", "skill://beta/gamma/x/SKILL.md"}
	if got := shown(t, o, t.Context(), wire.MethodSkillsList); !slices.Equal(got, want) {
		t.Errorf("skills: %q", got)
	}
	for uri, want := range map[string]struct{ server, asked string }{
		"skill://alpha/refunds/SKILL.md":       {"alpha", "skill://refunds/SKILL.md"},
		"skill://beta/refunds/scripts/run.py":  {"beta", "skill://refunds/scripts/run.py"},
		"skill://beta/beta/own/scripts/run.py": {"beta", "skill://beta/own/scripts/run.py"},
		"skill://alpha/own/scripts/run.py":     {"alpha", "skill://own/scripts/run.py"},    // although beta calls one so
		"skill://gamma/x/scripts/run.py":       {"beta", "skill://gamma/x/scripts/run.py"}, // its own name is clear
		"github://a/b/review/scripts/run.py":   {"alpha", "github://a/b/review/scripts/run.py"},
		"skill://alpha/not/listed/SKILL.md":    {"alpha", "skill://not/listed/SKILL.md"},
		"skill://alpha/refunds/of/no/manifest": {"alpha", "skill://refunds/of/no/manifest"},
	} {
		_, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"`+uri+`"}`), nil)
		if got := all[want.server].last(); err != nil || got != wire.MethodResourcesRead+` {"uri":"`+want.asked+`"}` {
			t.Errorf("%s: %s was asked %q, %v", uri, want.server, got, err)
		}
	}
	if got, err := o.Request(t.Context(), wire.MethodResourcesRead, json.RawMessage(`{"uri":"skill://luanette/using/scripts/run.py"}`), nil); err != nil || !strings.Contains(string(got), `"ours"`) {
		t.Errorf("ours: %s, %v", got, err)
	}
	got, err := o.Request(t.Context(), wire.MethodSkillsGet, json.RawMessage(`{"uri":"skill://beta/refunds/SKILL.md"}`), nil)
	if want := `{"skill":` + strings.ReplaceAll(entryOf("skill://refunds"), "skill://refunds", "skill://beta/refunds") + `}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for method, uri := range map[string]string{wire.MethodSkillsGet: "skill://refunds/SKILL.md", wire.MethodDirectoryRead: "skill://beta/refunds/SKILL.md"} {
		var refused *wire.Error
		if _, err := o.Request(t.Context(), method, json.RawMessage(`{"uri":"`+uri+`"}`), nil); !errors.As(err, &refused) || refused.Code != wire.CodeInvalidParams {
			t.Errorf("%s %s: %v", method, uri, err)
		}
	}
	got, err = o.Request(t.Context(), wire.MethodDirectoryRead, json.RawMessage(`{"uri":"skill://beta/refunds"}`), nil)
	if want := `{"resources":[{"uri":"skill://beta/refunds/SKILL.md","name":"SKILL.md","mimeType":"text/markdown","size":4},{"uri":"skill://beta/refunds/scripts","name":"scripts","mimeType":"inode/directory"}]}`; err != nil || string(got) != want {
		t.Errorf("the folder: %s, %v", got, err)
	}
	if got, err = o.Request(t.Context(), wire.MethodDirectoryRead, json.RawMessage(`{"uri":"skill://beta"}`), nil); err != nil || strings.Count(string(got), "inode/directory") != 4 {
		t.Errorf("the server's folder: %s, %v", got, err)
	}
}
