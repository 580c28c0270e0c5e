package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// questions are what a user would ask for who does not know our tools: one per tool.
var questions = map[string]string{
	"approval_decide":      "allow a paused script to continue",
	"approval_delegate":    "let a colleague decide approvals while I am away",
	"approval_forget":      "delete a remembered approval decision",
	"approval_list":        "which scripts wait for approval",
	"approval_status":      "was my script approved yet",
	"call_tool":            "call a tool by its name",
	"call_tool_read":       "call a tool that only reads",
	"execute_code":         "run JavaScript that calls several tools",
	"get_tool_definitions": "show the input schema of a tool",
	"job_cancel":           "stop a running job",
	"job_journal":          "which calls did a job make",
	"job_list":             "list my background jobs",
	"job_logs":             "what did the job print",
	"job_poll":             "wait until a job is finished",
	"job_undo":             "undo what a job has changed",
	"job_resume":           "continue a failed job with a call in doubt",
	"job_replay":           "run a finished job again without calling anything",
	"job_stats":            "how many jobs are there in each state",
	"job_status":           "result of a job",
	"lua_describe":         "which parameters does a stored script take",
	"lua_eval":             "run some Lua code",
	"lua_execute":          "start a script in the background",
	"lua_help":             "which modules and functions can a Lua script use",
	"lua_preview":          "see what a script would change without running it",
	"mcp_connect":          "connect a new MCP server by url",
	"mcp_disconnect":       "remove a connected server",
	"mcp_list_upstreams":   "which servers are connected",
	"mcp_status":           "why is a server not connected",
	"prompt_get":           "get the messages of a prompt",
	"resource_read":        "read a resource by its uri",
	"resource_search":      "which resources and prompts are there",
	"result_read":          "read the rest of a large result",
	"schedule_list":        "list the scheduled jobs",
	"schedule_pause":       "pause a scheduled job",
	"schedule_remove":      "delete a schedule",
	"schedule_resume":      "continue a paused schedule",
	"script_get":           "show the source of a stored script",
	"script_history":       "older versions of a published script",
	"script_publish":       "make a tool out of my script",
	"script_search":        "find a stored script",
	"script_store":         "save a script",
	"script_unpublish":     "remove a published script",
	"search_tools":         "find a tool for a task",
	"session_close":        "delete a session",
	"session_create":       "keep variables between runs of code",
	"session_fork":         "copy a session",
	"session_list":         "show my sessions",
	"session_reset":        "clear all variables of a session",
	"session_script":       "turn a function of a session into a script",
	"trace_get":            "show the spans of a trace",
	"tools_refresh":        "reload the tools of a server",
}

func TestEveryToolIsFoundByAPlainQuestion(t *testing.T) {
	t.Parallel()
	h := open(t)
	own, _ := h.set.Tools(t.Context())
	for _, info := range own {
		question := questions[info.Name]
		if question == "" {
			t.Errorf("no question about %s", info.Name)
			continue
		}
		hits, _ := h.catalog.Search(t.Context(), catalog.Query{Text: question, Limit: 3})
		if !slices.ContainsFunc(hits, func(hit catalog.Hit) bool { return hit.Ref == info.Ref }) {
			var names []string
			for _, hit := range hits {
				names = append(names, hit.Ref.String())
			}
			t.Errorf("%q finds %v, not %s", question, names, info.Name)
		}
	}
}

func TestEveryToolHasAFamily(t *testing.T) {
	t.Parallel()
	h := open(t)
	var found searchtools.Found
	view := h.mustCall(t, "search_tools", `{"query": ""}`, &found)
	var names []string
	for _, f := range found.Families {
		names = append(names, f.Tools...)
	}
	slices.Sort(names)
	own, _ := h.set.Tools(t.Context())
	var want []string
	for _, info := range own {
		want = append(want, info.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("families have %v, want %v", names, want)
	}
	if !strings.Contains(view.Text(), "jobs: lua_execute, job_poll") {
		t.Errorf("the text has no families: %s", view.Text())
	}
}

func TestSearchInAFamily(t *testing.T) {
	t.Parallel()
	h := open(t)
	for namespace, want := range map[string]string{"jobs": "job_list", "luanette": "job_list", "schedules": "schedule_list"} {
		var found searchtools.Found
		h.mustCall(t, "search_tools", `{"query": "`+strings.ReplaceAll(want, "_", " ")+`", "limit": 1, "namespace": "`+namespace+`"}`, &found)
		if len(found.Tools) != 1 || found.Tools[0].Name != want || found.Total < 2 {
			t.Errorf("%s: %+v", namespace, found)
		}
	}
	view := h.mustCall(t, "search_tools", `{"query": "wait until a job is finished"}`, nil)
	if !strings.Contains(view.Text(), "jobs: lua_execute, job_poll, job_status, job_list") {
		t.Errorf("the family of what was found is not shown: %s", view.Text())
	}
	if view, err := h.call(t, "search_tools", `{"query": "x", "namespace": "jbs"}`); err != nil || !view.IsError || !strings.Contains(view.Text(), "did you mean jobs?") {
		t.Errorf("unknown namespace: %s, %v", view.Text(), err)
	}
}
