package builtin_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

// A client that waits with job_poll gets the progress that the job reports, and job_status
// shows it.
func TestProgressOfAJobReachesItsPoll(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	id := o.start(t, `function main() progress(0.5, "half way") mcp.bank.pay{ to = "slow" } end`, "{}")
	<-o.bank.wait // it reported before it pays
	var status struct {
		Progress float64
		Message  string
	}
	if o.mustCall(t, "job_status", `{"job_id":"`+id+`"}`, &status); status.Progress != 0.5 || status.Message != "half way" {
		t.Errorf("status %+v", status)
	}
	got := make(chan tool.Progress, 10)
	var poll sync.WaitGroup
	poll.Go(func() {
		caller := &tool.Caller{Progress: func(p tool.Progress) { got <- p }}
		args := json.RawMessage(`{"job_ids":["` + id + `"],"timeout_ms":60000}`)
		if _, err := o.catalog.Call(t.Context(), tool.Call{Ref: tool.Ref{Name: "job_poll"}, Args: args, Caller: caller}); err != nil {
			t.Error(err)
		}
	})
	if p := <-got; p.Progress != 0.5 || p.Total != 1 || p.Message != "half way" {
		t.Errorf("progress %+v", p)
	}
	var cancelled struct{ Success bool }
	o.mustCall(t, "job_cancel", `{"job_id":"`+id+`"}`, &cancelled)
	poll.Wait()
}
