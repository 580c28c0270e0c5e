package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/tool"
)

var (
	storedHash = regexp.MustCompile(`[0-9a-f]{64}`)
	startedJob = regexp.MustCompile(`Job ID: (\S+)`)
)

// jobModel stores a script, starts it as a job and waits for it, or lists all jobs: with
// the tools that a client without configuration has.
func jobModel(r llmtest.Request) llmtest.Step {
	call := func(name, arguments string) llmtest.Step {
		return llmtest.Step{Offer: []string{"call_tool"}, Use: []llmtest.Use{{Name: "call_tool", Input: fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)}}}
	}
	last := r.Last()
	job := startedJob.FindStringSubmatch(last)
	switch {
	case last == "start a job":
		return call("script_store", `{"content":"function main() return mcp['my-wiki'].find_page{} end"}`)
	case last == "list the jobs":
		return call("job_list", `{}`)
	case last == "decide it yourself":
		return call("approval_decide", `{}`)
	case job != nil:
		return call("job_poll", fmt.Sprintf(`{"job_ids":[%q],"timeout_ms":60000}`, strings.TrimSuffix(job[1], ".")))
	case storedHash.MatchString(last) && len(r.Turns) == 3:
		return call("lua_execute", fmt.Sprintf(`{"script_hash":%q}`, storedHash.FindString(last)))
	default:
		return llmtest.Step{Echo: true}
	}
}

// TestJobsOfAChat checks that jobs can be started in a chat by default, that they reach the
// servers of the person, that others do not see them there, and that they are in the one
// list of jobs.
func TestJobsOfAChat(t *testing.T) {
	t.Parallel()
	model := llmtest.Start(t, jobModel)
	file := configtest.WriteFile(t, "[chat]\nbase_url = \""+model.URL+"\"\n")
	url, srv := start(t, config.Sources{File: file, Env: config.Environment{"HOME": t.TempDir(), "ANTHROPIC_API_KEY": llmtest.Key}})
	for _, user := range []string{"ann", "bob"} {
		path := fmt.Sprintf("%s/api/v1/admin/orgs/default/users/%s/mcp-servers/my-wiki", url, user)
		if answer, text := httpjsontest.Read(t, "PUT", path, fmt.Sprintf(`{"url":%q}`, serveTools(t, "wiki", wiki{user})+"/mcp")); answer.StatusCode != 200 {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
	}
	ask := func(user, message string) string {
		_, text := httpjsontest.Read(t, "POST", url+"/api/v1/chat", fmt.Sprintf(`{"client_id":"t","user_id":%q,"message":%q}`, user, message))
		return text
	}
	if answer := ask("ann", "start a job"); !strings.Contains(answer, "a page of ann") {
		t.Fatalf("ann's job: %s", answer)
	}
	if answer := ask("bob", "list the jobs"); strings.Contains(answer, "complete") {
		t.Errorf("bob sees %s", answer)
	}
	if answer := ask("ann", "list the jobs"); !strings.Contains(answer, "complete") {
		t.Errorf("ann sees %s", answer)
	}
	all, err := srv.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "job_list"}, Args: []byte(`{}`)})
	if err != nil || !strings.Contains(string(all.Raw), "complete") {
		t.Errorf("the owner sees %s, %v", all.Raw, err)
	}
	if answer := ask("ann", "decide it yourself"); !strings.Contains(answer, "approval_decide") || strings.Contains(answer, `\"decided`) {
		t.Errorf("an approval: %s", answer)
	}
}
