package session

import (
	"context"
	"fmt"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Values belong to a script and a principal; turns of sessions and code without a name
// share theirs.
func TestValuesOfScripts(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), func(o *script.Options) { o.KV = openKV(t) }, Options{})
	run := func(who, name string) string {
		t.Helper()
		outcome, err := p.runner.Run(principal.With(t.Context(), principal.Principal{ID: who}), script.Request{Name: name, Source: `kv.set("n", kv.get("n", 0) + 1) return kv.get("n")`})
		if err != nil {
			t.Fatal(err)
		}
		return string(outcome.Result)
	}
	got := run("ada", "mix") + run("ada", "mix") + run("ada", "other") + run("bob", "mix") + run("local", "") + p.say(t, p.create(t), `return kv.get("n")`)
	if got != "121111" {
		t.Errorf("counted %s", got)
	}
}

// A function of a session takes along what earlier turns defined.
func TestBackgroundInSession(t *testing.T) {
	t.Parallel()
	jobs := &instantJobs{}
	p := openSessions(t, t.TempDir(), func(o *script.Options) { o.Jobs = func() script.Jobs { return jobs } }, Options{Memory: 1})
	jobs.runner = p.runner
	id := p.create(t)
	p.say(t, id, "local n = 4 function more(k) n = n + k return n end")
	p.say(t, id, "more(1)")
	p.say(t, id, "job = background(function(p) return more(p.k) end, { k = 2 })")
	if got := p.say(t, id, "return { tools.mcp_result(job) }, more(10)"); got != `[[7,"complete"],15]` {
		t.Errorf("got %s", got)
	}
}

// instantJobs are jobs that have ended when they have started. Their ids count from 1.
type instantJobs struct {
	runner *script.Runner
	ended  []host.JobResult
}

func (j *instantJobs) NewID(string) string { return fmt.Sprintf("job-%d", len(j.ended)+1) }

func (j *instantJobs) Start(ctx context.Context, _, _ string, n host.NewJob) error {
	outcome, err := j.runner.Run(ctx, script.Request{Source: n.Source, Language: n.Language, Params: n.Params, Main: true})
	result := host.JobResult{State: "complete", Value: outcome.Result}
	if err != nil {
		result = host.JobResult{State: "error", Error: err.Error()}
	}
	j.ended = append(j.ended, result)
	return nil
}

func (*instantJobs) ChangedFile(context.Context, string, string) (host.ChangedFile, error) {
	return host.ChangedFile{}, nil
}

func (j *instantJobs) Result(_ context.Context, id string) (host.JobResult, error) {
	for i, result := range j.ended {
		if id == fmt.Sprintf("job-%d", i+1) {
			return result, nil
		}
	}
	return host.JobResult{}, fault.New(fault.NotFound, "no job %s", id)
}
