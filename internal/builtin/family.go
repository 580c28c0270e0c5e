package builtin

import (
	"context"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// Family is a group of our own tools that are used together. search_tools shows the names
// of a whole family with each of its tools that it finds.
type Family struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools"`
}

// families are all our own tools; those that start something first.
var families = []Family{
	{findingFamily, []string{"search_tools", "get_tool_definitions", "call_tool", "result_read"}},
	{"code", []string{"execute_code", "lua_eval", "lua_preview", "lua_help"}},
	{"jobs", []string{"lua_execute", "job_poll", "job_status", "job_list", "job_stats", "job_logs", "job_cancel", "job_journal", "job_replay", "job_undo", "trace_get"}},
	{"schedules", []string{"schedule_list", "schedule_pause", "schedule_resume", "schedule_remove"}},
	{"sessions", []string{"session_create", "session_list", "session_fork", "session_reset", "session_script", "session_close"}},
	{"scripts", []string{"script_store", "script_search", "script_get", "lua_describe", "script_publish", "script_unpublish", "script_history"}},
	{"approvals", []string{"approval_list", "approval_status", "approval_decide", "approval_forget", "approval_delegate"}},
	{"connections", []string{"mcp_list_upstreams", "mcp_status", "mcp_connect", "mcp_disconnect", "tools_refresh"}},
}

// The family of the tools that every client uses anyway, and that of published scripts.
const (
	findingFamily   = "tools"
	publishedFamily = "published"
)

// ownNamespace names all our own tools and published scripts in a search.
const ownNamespace = "luanette"

// familyOf returns the name of a tool's family.
func familyOf(name string) string {
	for _, f := range families {
		if slices.Contains(f.Tools, name) {
			return f.Name
		}
	}
	return publishedFamily
}

// familiesFor returns the families that the caller can use, with the tools it can use.
func (d discovery) familiesFor(ctx context.Context) []Family {
	own, _ := d.catalog.In(ctx, "")
	usable := func(name string) bool {
		return slices.ContainsFunc(own, func(info tool.Info) bool { return info.Name == name })
	}
	var found []Family
	for _, f := range families {
		f.Tools = slices.DeleteFunc(slices.Clone(f.Tools), func(name string) bool { return !usable(name) })
		found = append(found, f)
	}
	published := Family{Name: publishedFamily}
	for i := range own {
		if familyOf(own[i].Name) == publishedFamily {
			published.Tools = append(published.Tools, own[i].Name)
		}
	}
	found = append(found, published)
	return slices.DeleteFunc(found, func(f Family) bool { return len(f.Tools) == 0 })
}

// mostInFamily is how many names of a family are shown: there may be many published
// scripts.
const mostInFamily = 30

// familyLines lists families, one line each.
func familyLines(families []Family) string {
	var b strings.Builder
	for _, f := range families {
		names, more := f.Tools, ""
		if len(names) > mostInFamily {
			names, more = names[:mostInFamily], ", …"
		}
		b.WriteString("  " + f.Name + ": " + strings.Join(names, ", ") + more + "\n")
	}
	return b.String()
}
