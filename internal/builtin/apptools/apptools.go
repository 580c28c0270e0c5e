// Package apptools are the Apps of our own: an approval and a job as pages that a client shows in
// its window. A page acts by one tool that models are not shown, with a key that it gets with the
// result it shows. So neither the pages of other servers nor a model can act in its place.
package apptools

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"io/fs"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// Options are what the Apps need.
type Options struct {
	Pages  fs.FS         // NAME.html each
	Keys   secret.Box    // of the keys of pages
	URL    func() string // of our own page; "" if there is none
	Decide bool          // decisions may be made in the App
	All    tool.Source   // the tools by which they act
}

// Apps are the Apps of our own, and the source of the tool by which their pages act.
type Apps struct {
	Options
	*toolset.Set
}

// New makes the Apps.
func New(o Options) *Apps {
	a := &Apps{Options: o}
	a.Set = toolset.NewSet("", []toolset.Tool{toolset.ForPages(toolset.Relay(texts, "app_call", tool.Hints{}, a.call))})
	return a
}

// app is one of them: a tool whose results it shows, and what they are about.
type app struct {
	name, tool, title, description string
	id                             string // the field of arguments and results that says what it is about
	page                           string // of ours, about such a thing
	actions                        map[string]string
}

var all = []app{
	{
		"approval", "approval_status", "A request for approval", "Shows a request for approval with its plan, to clients that show Apps",
		"approval_id", "/#/approvals/", map[string]string{"status": "approval_status", "allow": "approval_decide", "deny": "approval_decide"},
	},
	{
		"job", "job_status", "A job", "Shows a job with its steps and progress, to clients that show Apps",
		"job_id", "/#/jobs/", map[string]string{"status": "job_status", "steps": "job_journal", "cancel": "job_cancel", "undo": "job_undo"},
	},
}

func (a *app) uri() string { return apps.Scheme + "luanette/" + a.name + ".html" }

func find(is func(*app) bool) *app {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Resources are the pages.
func (a *Apps) Resources() (list []builtin.Resource) {
	for i := range all {
		one := &all[i]
		list = append(list, builtin.Resource{
			URI: one.uri(), Name: "app-" + one.name, Title: one.title, Description: one.description, MIMEType: apps.MIMEType,
			Read: func(context.Context, string) (string, error) {
				page, err := fs.ReadFile(a.Pages, one.name+".html")
				return string(page), err
			},
		})
	}
	return list
}

// WithPages adds to tools the pages that show their results.
func WithPages(family []toolset.Tool) []toolset.Tool {
	for i, t := range family {
		if one := find(func(a *app) bool { return a.tool == t.Name() }); one != nil {
			family[i] = toolset.WithPage(t, one.uri())
		}
	}
	return family
}

// grant is what a page gets with a result.
type grant struct {
	Key    string `json:"key"`
	URL    string `json:"url"`
	Decide bool   `json:"decide,omitempty"`
}

// grantKey is the key of a grant in the _meta of a result.
const grantKey = "luanette/app"

// Grant adds to a result what its page needs to act: a key that is good for what the result is
// about, and for this caller.
func (a *Apps) Grant(ctx context.Context, name string, result tool.Result) tool.Result {
	one := find(func(a *app) bool { return a.tool == name })
	if one == nil {
		return result
	}
	content, _ := rawjson.Get(result.Raw, "structuredContent")
	id, ok := rawjson.GetText(content, one.id)
	if !ok {
		return result
	}
	sealed, err := a.Keys.Seal(id, about(ctx, one)...)
	if err != nil {
		return result // the page shows the result, and cannot act
	}
	g := grant{Key: one.name + ":" + base64.RawURLEncoding.EncodeToString(sealed), Decide: a.Decide && isSimple(content)}
	if url := a.URL(); url != "" {
		g.URL = url + one.page + id
	}
	raw, err := json.Marshal(g)
	if err != nil {
		return result
	}
	result.Raw = wire.SetMeta(result.Raw, rawjson.Set(wire.Meta(result.Raw), grantKey, raw))
	return result
}

// about is what a key is bound to: the App and the caller.
func about(ctx context.Context, one *app) []string {
	who := principal.Of(ctx)
	return []string{"app", one.name, who.LoginOwner(), who.ActingOrg()}
}

// isSimple tells whether one person alone decides a request, and the caller may: where a rule
// names a role or a second person, nobody decides in an App.
func isSimple(approval json.RawMessage) bool {
	var a struct {
		Role   string `json:"role"`
		Needed int    `json:"needed"`
		May    bool   `json:"may_decide"`
	}
	return json.Unmarshal(approval, &a) == nil && a.May && a.Role == "" && a.Needed <= 1
}

type callIn struct {
	Key    string `json:"key" jsonschema:"that the page got" min:"1" max:"4000"`
	Action string `json:"action" enum:"status,steps,cancel,undo,allow,deny"`
	Plan   string `json:"plan,omitempty" jsonschema:"plan_digest of the plan that is shown" max:"64"`
}

func (a *Apps) call(ctx context.Context, call tool.Call, in callIn) (tool.Result, error) {
	one, id, err := a.open(ctx, in.Key)
	if err != nil {
		return tool.Result{}, err
	}
	name, ok := one.actions[in.Action]
	if !ok {
		return tool.Result{}, fault.New(fault.InvalidParams, "the App %s has no action %s", one.name, in.Action)
	}
	args := rawjson.SetText(nil, one.id, id)
	if in.Action == "allow" || in.Action == "deny" {
		if err := a.checkDecision(ctx, call, args); err != nil {
			return tool.Result{}, err
		}
		args = rawjson.SetText(rawjson.SetText(args, "decision", in.Action), "plan", in.Plan)
	}
	return a.All.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: args, Caller: call.Caller})
}

// open returns what a key is good for.
func (a *Apps) open(ctx context.Context, key string) (one *app, id string, err error) {
	for i := range all {
		one = &all[i]
		prefix := one.name + ":"
		if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
			continue
		}
		sealed, err := base64.RawURLEncoding.DecodeString(key[len(prefix):])
		if err == nil && a.Keys.Open(sealed, &id, about(ctx, one)...) == nil {
			return one, id, nil
		}
	}
	return nil, "", fault.New(fault.Denied, "this key is of no App that you were shown").WithHint("call approval_status or job_status again")
}

// checkDecision refuses a decision that is not to be made in an App.
func (a *Apps) checkDecision(ctx context.Context, call tool.Call, args json.RawMessage) error {
	refused := fault.New(fault.Denied, "this is not decided in an App").WithHint("open the page of Luanette; the setting mcp.decide_in_apps admits what no rule reserves for a role or several people")
	if !a.Decide {
		return refused
	}
	result, err := a.All.Call(ctx, tool.Call{Ref: tool.Ref{Name: "approval_status"}, Args: args, Caller: call.Caller})
	if err != nil {
		return err
	}
	if content, _ := rawjson.Get(result.Raw, "structuredContent"); !isSimple(content) {
		return refused
	}
	return nil
}
