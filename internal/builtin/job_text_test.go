package builtin_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/tools/catalog"
)

// TestTextsOfJobs checks that the texts of the job tools have results, errors and output:
// many clients show a model nothing else.
func TestTextsOfJobs(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	good := o.start(t, `function main(p) print("paying " .. p.to) return mcp.bank.pay{ to = p.to }.receipt end`, `{"to":"amy"}`)
	bad := o.start(t, `function main() print("so far") error("no money left") end`, `{}`)
	long := o.start(t, `function main() return ("x"):rep(100000) end`, `{}`)
	o.wait(t, good)
	o.wait(t, bad)
	o.wait(t, long)
	for _, c := range []struct {
		tool, args string
		want       []string
	}{
		{"job_poll", `{"job_ids":["` + good + `","` + bad + `"],"timeout_ms":60000,"mode":"all"}`,
			[]string{"Poll complete. 2 jobs finished.", "Result: R-amy", "Output:\n  paying amy", "Error: ", "no money left", "Output:\n  so far"}},
		{"job_status", `{"job_id":"` + good + `"}`, []string{": complete", "Result: R-amy", "Output:\n  paying amy"}},
		{"job_status", `{"job_id":"` + bad + `"}`, []string{": failed", "Error: ", "no money left", "Output:\n  so far"}},
		{"job_list", `{}`, []string{": failed", "no money left"}},
		{"job_journal", `{"job_id":"` + good + `"}`, []string{`bank.pay({"to":"amy"})  = `, `"receipt":"R-amy"`}},
		{"job_replay", `{"job_id":"` + good + `"}`, []string{"Replay complete", "Result: R-amy", "Output:\n  paying amy"}},
		{"job_poll", `{"job_ids":["` + long + `"],"timeout_ms":0}`, []string{"xxx… (100000 bytes in all)"}},
		{"get_tool_definitions", `{"names":["bank.pay"]}`, []string{"bank.pay\nPays.", "in Lua: mcp.bank.pay", `input: {"type":"object"}`, `output: {"type":"object"`}},
	} {
		view := o.mustCall(t, c.tool, c.args, nil)
		for _, want := range c.want {
			if !strings.Contains(view.Text(), want) {
				t.Errorf("%s: %q is not in the text:\n%.2000s", c.tool, want, view.Text())
			}
		}
		if len(view.Text()) > 40_000 {
			t.Errorf("%s: %d bytes of text", c.tool, len(view.Text()))
		}
	}
}

// TestAJobIsStartedByCallTool checks the way of a client that is shown the smallest menu.
func TestAJobIsStartedByCallTool(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	hash := o.storeScript(t, `function main(p) return p.n * 2 end`, "")
	hits, _ := o.catalog.Search(t.Context(), catalog.Query{Text: "start a script in the background", Limit: 1})
	if len(hits) != 1 || hits[0].Name != "lua_execute" {
		t.Fatalf("found %v", hits)
	}
	var started struct {
		JobID string `json:"job_id"`
	}
	o.mustCall(t, "call_tool", `{"name":"lua_execute","arguments":{"script_hash":"`+hash+`","params":{"n":21}}}`, &started)
	view := o.mustCall(t, "call_tool", `{"name":"job_poll","arguments":{"job_ids":["`+started.JobID+`"],"timeout_ms":60000}}`, nil)
	if !strings.Contains(view.Text(), "Result: 42") {
		t.Errorf("text %s", view.Text())
	}
	view = o.mustCall(t, "execute_code", `{"code":"return mcp.job_status{job_id='`+started.JobID+`'}.result","language":"lua"}`, nil)
	if !strings.HasPrefix(view.Text(), "42") {
		t.Errorf("from code: %s", view.Text())
	}
}
