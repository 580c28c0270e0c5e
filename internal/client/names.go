package client

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
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

// mostNames is how many names are listed.
const mostNames = 200

// Names lists what a person may mean, from stored data. It starts no upstream.
func Names(ctx context.Context, api Client, kind NameKind) ([]Name, error) {
	switch kind {
	case ToolNames, UpstreamNames, PublishedNames:
		return catalogNames(ctx, api, kind)
	case JobNames:
		return jobNames(ctx, api)
	case ScheduleNames:
		var list jobtools.ScheduleList
		err := listInto(ctx, api, "schedule_list", nil, &list)
		return namesOf(list.Schedules, func(s jobtools.ScheduleView) Name {
			return Name{s.ScheduleID, strings.TrimSpace(s.Name + " " + s.Schedule)}
		}), err
	case ApprovalNames:
		var list approvaltools.ApprovalList
		err := listInto(ctx, api, "approval_list", map[string]any{"status": "any", "limit": mostNames}, &list)
		return namesOf(list.Approvals, func(a approvaltools.ApprovalView) Name { return Name{a.ID, a.Subject + ", " + a.Status} }), err
	case ScriptNames:
		return scriptNames(ctx, api)
	}
	return nil, fault.New(fault.InvalidParams, "no names of kind %q", kind)
}

// listInto calls a tool and decodes its result.
func listInto(ctx context.Context, api Client, name string, args map[string]any, list any) error {
	view, err := api.Call(ctx, name, args, nil)
	if err != nil {
		return err
	}
	if view.IsError {
		return fault.New(fault.Upstream, "%s", view.Text())
	}
	return json.Unmarshal(view.Structured, list)
}

func namesOf[T any](list []T, name func(T) Name) []Name {
	names := make([]Name, len(list))
	for i, one := range list {
		names[i] = name(one)
	}
	return names
}

func jobNames(ctx context.Context, api Client) ([]Name, error) {
	var list jobtools.JobList
	err := listInto(ctx, api, "job_list", map[string]any{"limit": mostNames}, &list)
	return namesOf(list.Jobs, func(j jobtools.JobView) Name { return Name{j.JobID, strings.TrimSpace(j.Name + " " + j.Status)} }), err
}

// scriptNames lists stored scripts; a name that several have once.
func scriptNames(ctx context.Context, api Client) (names []Name, err error) {
	var list scripttools.FoundScripts
	err = listInto(ctx, api, "script_search", map[string]any{"limit": mostNames}, &list)
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
		var list struct{ Upstreams []servertools.UpstreamView }
		err := listInto(ctx, api, "mcp_list_upstreams", nil, &list)
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
