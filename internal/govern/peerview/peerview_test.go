package peerview_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/peerview"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// The lists of the upstream. The unknown members must reach the client.
const (
	toolPage = `{"tools":[{"name":"find","title":"Find","description":"Finds a page.","x":1},{"name":"send","description":"Sends a page."}],"nextCursor":"2"}`
	prompt1  = `{"name":"hello","description":"Greets."}`
	prompt2  = `{"name":"bye","description":"Takes leave."}`
)

// remote is the upstream docs. It records the requests that reach it.
type remote struct {
	requests []string
	err      error
}

func (r *remote) Tools(context.Context) (list []tool.Info, _ error) {
	var page struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(toolPage), &page); err != nil {
		return nil, err
	}
	for _, raw := range page.Tools {
		var read struct{ Name, Title, Description string }
		if err := json.Unmarshal(raw, &read); err != nil {
			return nil, err
		}
		list = append(list, tool.Info{
			Ref: tool.Ref{Space: "docs", Name: read.Name}, Title: read.Title, Description: read.Description, Raw: raw, Input: json.RawMessage(`{"type":"object"}`),
		})
	}
	return list, nil
}

// source makes the upstream a tool.Source for the catalog, which relays instead.
type source struct{ tool.Lister }

func (source) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("called instead of relayed")
}

func (r *remote) Call(_ context.Context, _ tool.Call, params json.RawMessage) (tool.Result, error) {
	r.requests = append(r.requests, "tools/call "+string(params))
	return tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, r.err
}

func (r *remote) Request(_ context.Context, method string, params json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	r.requests = append(r.requests, method+" "+string(params))
	switch {
	case method == wire.MethodToolsList:
		return json.RawMessage(toolPage), r.err
	case method == wire.MethodPromptsList && strings.Contains(string(params), "second"):
		return json.RawMessage(`{"prompts":[` + prompt2 + `]}`), r.err
	case method == wire.MethodPromptsList:
		return json.RawMessage(`{"prompts":[` + prompt1 + `],"nextCursor":"second"}`), r.err
	default:
		return json.RawMessage(`{"relayed":true}`), r.err
	}
}

func (r *remote) Describe(context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	return json.RawMessage(`{"tools":{}}`), json.RawMessage(`{"name":"docs"}`), json.RawMessage(`"Search first."`), r.err
}

func (r *remote) Listed(context.Context, string) []json.RawMessage {
	return []json.RawMessage{json.RawMessage(prompt1), json.RawMessage(prompt2)}
}

func (*remote) Find(context.Context, string) (tool.Info, bool) { return tool.Info{}, false }

func (r *remote) Watch(func(string, json.RawMessage)) (stop func()) { return func() {} }

// fixture is the view of docs.
type fixture struct {
	hub.Peer
	remote      *remote
	pins        *pin.Guard
	overlay     *overlay.Source
	transformed bool
}

func view(t *testing.T, mode pin.Mode) *fixture {
	t.Helper()
	f := &fixture{remote: &remote{}}
	var err error
	f.pins, err = pin.New(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), f.remote, pin.Options{
		Settings: pin.Settings{Modes: map[string]pin.Mode{"docs": mode}}, Own: func() []string { return nil }, Target: func(string) string { return "docs" },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.overlay = overlay.New(f.pins, source{f.remote})
	tools := catalog.New(catalog.Options{Hides: func(who principal.Principal) func(*tool.Info) bool {
		if who.ID != "key:guarded" {
			return nil
		}
		return func(info *tool.Info) bool { return info.Name == "send" } // as a policy does
	}})
	tools.Add(f.overlay)
	tools.Refresh(t.Context())
	f.Peer = peerview.New(f.remote, "docs", peerview.Options{
		Catalog: tools, Overlay: f.overlay, Pins: f.pins,
		Transformed: func() bool { return f.transformed },
	})
	return f
}

func (f *fixture) approve(t *testing.T) {
	t.Helper()
	if _, _, err := f.pins.ApproveAll(t.Context(), "docs", "ann", true); err != nil {
		t.Fatal(err)
	}
}

// key is a principal who is not an administrator.
func key(name string, tools ...string) principal.Principal {
	return principal.Principal{ID: "key:" + name, Name: name, Scopes: []principal.Scope{principal.MCP}, Tools: tools}
}

// names lists the names in a page of the upstream.
func names(t *testing.T, page json.RawMessage) string {
	t.Helper()
	var read struct{ Tools, Prompts []struct{ Name string } }
	if err := json.Unmarshal(page, &read); err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return fmt.Sprint(append(read.Tools, read.Prompts...))
}

func (f *fixture) list(t *testing.T, who principal.Principal, method string) json.RawMessage {
	t.Helper()
	page, err := f.Request(principal.With(t.Context(), who), method, json.RawMessage(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestToolsThatACallerSees(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	if page := f.list(t, principal.Local(), wire.MethodToolsList); string(page) != toolPage {
		t.Errorf("an administrator gets %s, want the page as it is", page)
	}
	for _, c := range []struct {
		who  principal.Principal
		want string
	}{{key("web"), "[{find} {send}]"}, {key("some", "docs.find"), "[{find}]"}, {key("others", "mail.*"), "[]"}, {key("guarded"), "[{find}]"}} {
		page := f.list(t, c.who, wire.MethodToolsList)
		if got := names(t, page); got != c.want || !strings.Contains(string(page), `"nextCursor":"2"`) {
			t.Errorf("%s gets %s, want %s and the cursor", c.who.Name, page, c.want)
		}
	}
	if page := string(f.list(t, key("guarded"), wire.MethodToolsList)); !strings.Contains(page, `"x":1`) {
		t.Errorf("an unknown member is lost: %s", page)
	}
}

func TestTransformedTools(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	f.transformed = true
	f.overlay.SetTransform(func(_ context.Context, _ string, tools []tool.Info) ([]tool.Info, error) {
		tools = slices.DeleteFunc(slices.Clone(tools), func(info tool.Info) bool { return info.Name == "send" })
		for i := range tools {
			tools[i].Description = "Finds a page by its title."
		}
		return tools, nil
	})
	page := f.list(t, principal.Local(), wire.MethodToolsList)
	if names(t, page) != "[{find}]" || !strings.Contains(string(page), `"description":"Finds a page by its title."`) || !strings.Contains(string(page), `"title":"Find"`) {
		t.Errorf("listed %s", page)
	}
}

// TestPinnedUpstream checks that definitions that await review are neither listed nor
// used, and that approved ones are.
func TestPinnedUpstream(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Pinned)
	get := func(name string) error {
		_, err := f.Request(t.Context(), wire.MethodPromptsGet, json.RawMessage(`{"name":"`+name+`"}`), nil)
		return err
	}
	describe := func() string {
		_, _, instructions, err := f.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(instructions)
	}
	for method, want := range map[string]string{wire.MethodToolsList: "[]", wire.MethodPromptsList: "[]"} {
		if got := names(t, f.list(t, principal.Local(), method)); got != want {
			t.Errorf("%s before the review: %s", method, got)
		}
	}
	if got := describe(); got != "" {
		t.Errorf("instructions before the review: %s", got)
	}
	if err := get("bye"); fault.CodeOf(err) != fault.Denied { // it is on the second page of the list
		t.Errorf("a prompt that awaits review: %v", err)
	}
	if err := get("other"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a prompt that is not listed: %v", err)
	}
	f.approve(t)
	if got := names(t, f.list(t, principal.Local(), wire.MethodToolsList)); got != "[{find} {send}]" {
		t.Errorf("approved tools: %s", got)
	}
	if got := names(t, f.list(t, principal.Local(), wire.MethodPromptsList)); got != "[{hello}]" {
		t.Errorf("approved prompts: %s", got)
	}
	if got := describe(); got != `"Search first."` {
		t.Errorf("approved instructions: %s", got)
	}
	if err := get("bye"); err != nil {
		t.Errorf("an approved prompt: %v", err)
	}
	f.remote.err = errors.New("unreachable")
	if err := get("bye"); !errors.Is(err, f.remote.err) {
		t.Errorf("an unreachable upstream: %v", err)
	}
}

// TestKeyForSomeTools checks that prompts and resources do not exist for a key that is
// restricted to some tools.
func TestKeyForSomeTools(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	who := key("some", "docs.find")
	for _, method := range []string{wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodResourceTemplates} {
		if page := f.list(t, who, method); strings.Contains(string(page), "hello") || names(t, page) != "[]" {
			t.Errorf("%s: %s", method, page)
		}
	}
	for _, method := range []string{wire.MethodPromptsGet, wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodComplete} {
		if _, err := f.Request(principal.With(t.Context(), who), method, json.RawMessage(`{"name":"hello"}`), nil); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", method, err)
		}
	}
	if slices.ContainsFunc(f.remote.requests, func(r string) bool { return !strings.Contains(r, "/list ") }) {
		t.Errorf("the upstream received %q", f.remote.requests)
	}
	if got := f.list(t, who, wire.MethodPing); string(got) != `{"relayed":true}` {
		t.Errorf("ping: %s", got)
	}
}

func TestCallsAreRelayed(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	call := tool.Call{Ref: tool.Ref{Space: "docs", Name: "find"}, Args: json.RawMessage(`{}`)}
	params := json.RawMessage(`{"name":"find","arguments":{},"task":{"ttl":1},"x":1}`)
	want := []string{`tools/call {"name":"find","arguments":{},"x":1}`} // call.Task would make it a task
	for _, who := range []principal.Principal{principal.Local(), key("web")} {
		f.remote.requests = nil
		if result, err := f.Call(principal.With(t.Context(), who), call, params); err != nil || string(result.Raw) != `{"content":[]}` || !slices.Equal(f.remote.requests, want) {
			t.Errorf("%s: %s, %v; the upstream received %q", who.Name, result.Raw, err, f.remote.requests)
		}
	}
}

// TestAmbiguousParams checks that params that the upstream could read differently from
// us are refused.
func TestAmbiguousParams(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	call := tool.Call{Ref: tool.Ref{Space: "docs", Name: "find"}, Args: json.RawMessage(`{}`)}
	for _, params := range []string{
		`{"name":"find","name":"send"}`, `{"name":"find","Name":"send"}`, `{"NAME":"send"}`, `{"n\u0061me":"find","name":"send"}`,
		`{"name":"find","arguments":{},"arguments":{"all":true}}`, `{"name":"find","Arguments":{}}`,
	} {
		if _, err := f.Call(t.Context(), call, json.RawMessage(params)); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("a call with %s: %v", params, err)
		}
		if _, err := f.Request(t.Context(), wire.MethodPromptsGet, json.RawMessage(params), nil); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("a prompt with %s: %v", params, err)
		}
	}
	if len(f.remote.requests) > 0 {
		t.Errorf("the upstream received %q", f.remote.requests)
	}
}

func TestTasksAreNotAskedForAtTheUpstream(t *testing.T) {
	t.Parallel()
	f := view(t, pin.Open)
	for _, who := range []principal.Principal{key("web"), principal.Local()} {
		_, err := f.Request(principal.With(t.Context(), who), wire.MethodTasksGet, json.RawMessage(`{"taskId":"1"}`), nil)
		var protocol *wire.Error
		if !errors.As(err, &protocol) || protocol.Code != wire.CodeMethodNotFound || len(f.remote.requests) > 0 {
			t.Errorf("tasks/get of %s: %v; the upstream received %q", who.Name, err, f.remote.requests)
		}
	}
}

// TestReadsPassTheSteps checks that resources and prompts pass the steps of calls, under their
// names, and that those that a rule hides are not listed.
func TestReadsPassTheSteps(t *testing.T) {
	t.Parallel()
	var seen []string
	refuse := errors.New("refused by a step")
	tools := catalog.New(catalog.Options{
		Hides: func(principal.Principal) func(*tool.Info) bool {
			return func(info *tool.Info) bool { return info.Ref.String() == "docs.prompt:bye" }
		},
		Steps: []tool.Step{{Name: "record", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
			seen = append(seen, fmt.Sprintf("%s %s %t", i.Call.Kind, i.Info.Ref, i.Info.Hints.ReadOnly))
			if strings.HasSuffix(i.Info.Name, "secret") {
				return ctx, refuse
			}
			return ctx, nil
		}}},
	})
	f := view(t, pin.Open)
	tools.Add(f.overlay)
	tools.Refresh(t.Context())
	peer := peerview.New(f.remote, "docs", peerview.Options{Catalog: tools, Overlay: f.overlay, Pins: f.pins, Transformed: func() bool { return false }})
	for _, c := range []struct {
		method, params string
		refused        bool
	}{
		{wire.MethodResourcesRead, `{"uri":"a://b"}`, false}, {wire.MethodResourcesRead, `{"uri":"a://secret"}`, true},
		{wire.MethodPromptsGet, `{"name":"hello"}`, false}, {wire.MethodSubscribe, `{"uri":"a://secret"}`, true},
		{wire.MethodComplete, `{"ref":{"type":"ref/prompt","name":"secret"}}`, true},
	} {
		if _, err := peer.Request(t.Context(), c.method, json.RawMessage(c.params), nil); errors.Is(err, refuse) != c.refused {
			t.Errorf("%s %s: %v", c.method, c.params, err)
		}
	}
	want := []string{
		"resources/read docs.resource:a://b true", "resources/read docs.resource:a://secret true", "prompts/get docs.prompt:hello true",
		"resources/read docs.resource:a://secret true", "prompts/get docs.prompt:secret true",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the steps saw %q", seen)
	}
	if got := peer.Listed(t.Context(), wire.MethodPromptsList); len(got) != 1 || string(got[0]) != prompt1 {
		t.Errorf("listed %s", got)
	}
}
