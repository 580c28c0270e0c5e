package client

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/servertools"
)

// Name is the name or id of something that a person may type.
type Name struct {
	Value string
	About string
}

// NameKind is what names are of.
type NameKind string

// The kinds.
const (
	ToolNames      NameKind = "tool"
	UpstreamNames  NameKind = "upstream"
	JobNames       NameKind = "job"
	ScheduleNames  NameKind = "schedule"
	ApprovalNames  NameKind = "approval"
	ScriptNames    NameKind = "script"    // stored ones, by name if they have one
	PublishedNames NameKind = "published" // scripts that are tools
)

// mostNames is how many names are on a page.
const (
	mostNames     = 200
	mostApprovals = 500
)

// Names lists what a person may mean, from stored data: all, or the first. It starts no upstream.
func Names(ctx context.Context, api Client, kind NameKind, all bool) (names []Name, err error) {
	switch kind {
	case ToolNames, UpstreamNames, PublishedNames:
		return catalogNames(ctx, api, kind)
	case JobNames:
		err = Pages(ctx, api, "job_list", map[string]any{"limit": mostNames}, func(page jobtools.JobList) bool {
			for _, j := range page.Jobs {
				names = append(names, Name{j.JobID, cmp.Or(j.Name, "job") + ", " + j.Status})
			}
			return all
		})
	case ScheduleNames:
		err = Pages(ctx, api, "schedule_list", nil, func(page jobtools.ScheduleList) bool {
			for _, s := range page.Schedules {
				names = append(names, Name{s.ScheduleID, strings.TrimSpace(s.Name + " " + s.Schedule)})
			}
			return all
		})
	case ApprovalNames:
		err = Pages(ctx, api, "approval_list", map[string]any{"status": "any", "limit": mostApprovals}, func(page approvaltools.ApprovalList) bool {
			for _, a := range page.Approvals {
				names = append(names, Name{a.ID, a.Subject + ", " + a.Status})
			}
			for _, r := range page.Remembered {
				names = append(names, Name{r.ID, "remembered: " + r.Decision + " " + r.Subject})
			}
			return all
		})
	case ScriptNames:
		return scriptNames(ctx, api)
	default:
		err = fault.New(fault.InvalidParams, "no names of kind %q", kind)
	}
	return names, err
}

// Pages calls a tool that lists something in pages, and passes each page to add until there is
// none or add returns false.
func Pages[P any](ctx context.Context, api Client, name string, args map[string]any, add func(P) (more bool)) error {
	for {
		view, err := api.Call(ctx, name, args, nil)
		if err != nil {
			return err
		}
		if view.IsError {
			return fault.New(fault.Upstream, "%s", view.Text())
		}
		var page P
		if err := json.Unmarshal(view.Structured, &page); err != nil {
			return fault.Wrap(fault.Upstream, err, "read result of %s", name)
		}
		cursor, _ := rawjson.GetText(view.Structured, "next_cursor")
		if !add(page) || cursor == "" {
			return nil
		}
		if args == nil {
			args = map[string]any{}
		}
		args["cursor"] = cursor
	}
}

// listInto calls a tool and decodes its result.
func listInto[L any](ctx context.Context, api Client, name string, args map[string]any) (list L, err error) {
	err = Pages(ctx, api, name, args, func(page L) bool { list = page; return false })
	return list, err
}

func namesOf[T any](list []T, name func(T) Name) []Name {
	names := make([]Name, len(list))
	for i, one := range list {
		names[i] = name(one)
	}
	return names
}

// scriptNames lists stored scripts; a name that several have once.
func scriptNames(ctx context.Context, api Client) (names []Name, err error) {
	list, err := listInto[scripttools.FoundScripts](ctx, api, "script_search", map[string]any{"limit": mostNames})
	seen := map[string]bool{}
	for _, s := range list.Scripts {
		name := Name{s.Name, s.Description}
		if s.Name == "" {
			name = Name{s.Hash[:12], s.Description}
		}
		if !seen[name.Value] {
			seen[name.Value] = true
			names = append(names, name)
		}
	}
	return names, err
}

// catalogNames lists tools or upstreams as they are known.
func catalogNames(ctx context.Context, api Client, kind NameKind) (names []Name, err error) {
	here, ok := api.(*local)
	if kind == UpstreamNames {
		if ok {
			return namesOf(here.server.Upstreams().Namespaces(), func(name string) Name { return Name{Value: name} }), nil
		}
		list, err := listInto[struct{ Upstreams []servertools.UpstreamView }](ctx, api, "mcp_list_upstreams", nil)
		return namesOf(list.Upstreams, func(u servertools.UpstreamView) Name { return Name{u.Namespace, u.State} }), err
	}
	if ok {
		tools, err := here.server.Upstreams().Catalog.Tools(ctx)
		for i := range tools {
			if t := &tools[i]; kind == ToolNames || t.RunsScript && t.Space == "" {
				names = append(names, Name{t.Ref.String(), t.Description})
			}
		}
		return names, err
	}
	var list struct {
		Tools []struct {
			Path        string `json:"lua_path"`
			Description string
		}
	}
	text, err := api.Read(ctx, "lua://tools")
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	for _, t := range list.Tools {
		names = append(names, Name{strings.TrimPrefix(t.Path, "mcp."), t.Description})
	}
	return names, err
}
