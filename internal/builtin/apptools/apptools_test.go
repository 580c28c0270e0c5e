package apptools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin/apptools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// tools answers approval_status with its structured content, and records calls.
type tools struct {
	approval string
	called   []string
}

func (*tools) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

func (s *tools) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	s.called = append(s.called, call.Ref.Name+" "+string(call.Args))
	return tool.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":` + s.approval + `}`)}, nil
}

const (
	simple = `{"approval_id":"a1","may_decide":true,"needed":1}`
	bob    = `{"approval_id":"a1","may_decide":true,"needed":1,"role":"lead"}`
	both   = `{"approval_id":"a1","may_decide":true,"needed":2}`
)

func open(decide bool, approval string) (*apptools.Apps, *tools) {
	all := &tools{approval: approval}
	return apptools.New(apptools.Options{
		Pages: fstest.MapFS{"job.html": {Data: []byte("<!doctype html>")}}, URL: func() string { return "http://hub.example" }, Decide: decide, All: all,
		Keys: secret.Box{Key: func() (secret.Text, error) { return secret.New(strings.Repeat("k", 32)), nil }},
	}), all
}

func as(ctx context.Context, id string) context.Context {
	return principal.With(ctx, principal.Principal{ID: id, Scopes: []principal.Scope{principal.MCP}})
}

// granted is what the page of a tool gets with a result.
func granted(t *testing.T, ctx context.Context, a *apptools.Apps, name, content string) (key, url string, decide bool) {
	t.Helper()
	result := a.Grant(ctx, name, tool.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":` + content + `}`)})
	raw, _ := rawjson.Get(wire.Meta(result.Raw), "luanette/app")
	key, _ = rawjson.GetText(raw, "key")
	url, _ = rawjson.GetText(raw, "url")
	return key, url, rawjson.GetBool(raw, "decide")
}

func act(t *testing.T, ctx context.Context, a *apptools.Apps, args string) string {
	t.Helper()
	result, err := a.Call(ctx, tool.Call{Ref: tool.Ref{Name: "app_call"}, Args: json.RawMessage(args)})
	if err != nil {
		return err.Error()
	}
	view, err := result.View()
	if err != nil || !view.IsError {
		return ""
	}
	return view.Text()
}

// TestKeys checks that a key is good for what its page shows, and for the caller that got it.
func TestKeys(t *testing.T) {
	t.Parallel()
	a, all := open(false, simple)
	ann := as(t.Context(), "person:ann")
	key, url, decide := granted(t, ann, a, "job_status", `{"job_id":"j1"}`)
	if key == "" || url != "http://hub.example/#/jobs/j1" || decide {
		t.Fatalf("granted %q %q %v", key, url, decide)
	}
	for action, want := range map[string]string{"status": "job_status", "steps": "job_journal", "cancel": "job_cancel", "undo": "job_undo"} {
		all.called = nil
		if problem := act(t, ann, a, `{"key":"`+key+`","action":"`+action+`"}`); problem != "" || len(all.called) != 1 || all.called[0] != want+` {"job_id":"j1"}` {
			t.Errorf("%s: %s, called %q", action, problem, all.called)
		}
	}
	all.called = nil
	other, _, _ := granted(t, ann, a, "approval_status", simple)
	for what, problem := range map[string]string{
		"somebody else": act(t, as(t.Context(), "person:bob"), a, `{"key":"`+key+`","action":"cancel"}`),
		"a made-up key": act(t, ann, a, `{"key":"job:AAAA","action":"cancel"}`),
		"another App":   act(t, ann, a, `{"key":"job:`+strings.TrimPrefix(other, "approval:")+`","action":"cancel"}`),
		"its action":    act(t, ann, a, `{"key":"`+other+`","action":"cancel"}`),
	} {
		if problem == "" || len(all.called) != 0 {
			t.Errorf("%s may act: called %q", what, all.called)
		}
	}
	if key, _, _ := granted(t, ann, a, "job_list", `{"job_id":"j1"}`); key != "" {
		t.Error("a tool without a page grants a key")
	}
}

// TestDecisions checks where a request may be decided in an App.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting  bool
		approval string
		may      bool
	}{{false, simple, false}, {true, simple, true}, {true, bob, false}, {true, both, false}} {
		a, all := open(c.setting, c.approval)
		ann := as(t.Context(), "person:ann")
		key, _, decide := granted(t, ann, a, "approval_status", c.approval)
		problem := act(t, ann, a, `{"key":"`+key+`","action":"allow","plan":"p"}`)
		decided := len(all.called) > 0 && all.called[len(all.called)-1] == `approval_decide {"approval_id":"a1","decision":"allow","plan":"p"}`
		if decide != c.may || decided != c.may || (problem == "") != c.may {
			t.Errorf("%v %s: the App offers it: %v, it is decided: %v, %s", c.setting, c.approval, decide, decided, problem)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	a, _ := open(false, simple)
	for _, r := range a.Resources() {
		text, err := r.Read(t.Context(), "")
		if isThere := r.URI == "ui://luanette/job.html"; isThere != (err == nil && text != "") {
			t.Errorf("%s: %q, %v", r.URI, text, err)
		}
	}
}
