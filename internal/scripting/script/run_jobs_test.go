package script

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

// recordedJobs only records what is started. The id of a job is its token.
type recordedJobs struct{ started []host.NewJob }

func (j *recordedJobs) NewID(token string) string { return "id:" + token }

func (j *recordedJobs) Start(_ context.Context, _, _ string, n host.NewJob) error {
	j.started = append(j.started, n)
	return nil
}

func (*recordedJobs) ChangedFile(context.Context, string, string) (host.ChangedFile, error) {
	return host.ChangedFile{}, nil
}

func (j *recordedJobs) Result(_ context.Context, id string) (host.JobResult, error) {
	return host.JobResult{}, fault.New(fault.NotFound, "no job %s", id)
}

// memoryRecorder holds the records of a journal.
type memoryRecorder struct{ records [][]byte }

func (m *memoryRecorder) Record(data []byte) error {
	m.records = append(m.records, slices.Clone(data))
	return nil
}

// A job that died after an effect, before its outcome was recorded, makes the effect
// again: comparing and setting has its first outcome, and the started job is the same.
func TestRepeatedEffectsOfJobs(t *testing.T) {
	t.Parallel()
	for _, language := range []string{Lua, JavaScript} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			jobs := &recordedJobs{}
			r := newRunner(t, func(o *Options) { o.KV, o.Jobs = openKV(t), func() Jobs { return jobs } })
			source := `return kv.compare_and_set("n", nil, 1), background(function() end), kv.compare_and_set("n", 1, 2), tools.mcp_call("calc", "double")`
			if language == JavaScript {
				source = `return [kv.compare_and_set("n", null, 1), background(() => 1), kv.compare_and_set("n", 1, 2), tools.mcp_call("calc", "double")]`
			}
			run := func(past []host.Step) string {
				t.Helper()
				outcome, err := r.Run(t.Context(), Request{
					Source: source, Language: language, Job: "j1",
					Handler: host.NewReplay(past, host.NewJournal(&memoryRecorder{}, "boot")),
				})
				if err != nil {
					t.Fatal(err)
				}
				return string(outcome.Result)
			}
			recorder := &memoryRecorder{}
			journal := host.NewJournal(recorder, "boot")
			first, err := r.Run(t.Context(), Request{Source: source, Language: language, Job: "j1", Handler: journal})
			if err != nil || !strings.HasPrefix(string(first.Result), `[true,"id:j1/`) {
				t.Fatalf("%s, %v", first.Result, err)
			}
			steps, err := host.ReadJournal(append(recorder.records, journal.End())...)
			if err != nil {
				t.Fatal(err)
			}
			for n := range steps {
				if again := run(steps[:n]); again != string(first.Result) {
					t.Errorf("after %d of %d steps: %s, first %s", n, len(steps), again, first.Result)
				}
			}
		})
	}
}

// A preview shows what would be stored and started, and stores and starts nothing. What
// it set it can read, and jobs that it would start do not make the rest uncertain until
// their result is looked at.
func TestPreviewOfValuesAndJobs(t *testing.T) {
	t.Parallel()
	jobs := &recordedJobs{}
	r := newRunner(t, func(o *Options) { o.KV, o.Jobs = openKV(t), func() Jobs { return jobs } })
	rehearsal := host.NewRehearsal(r.options.Tools, nil, map[string]json.RawMessage{"calc.double": json.RawMessage(`{"n":8}`), "tools.mcp_call": json.RawMessage(`{"n":8}`)})
	outcome, err := r.Run(t.Context(), Request{Handler: rehearsal, Source: `
		kv.set("a", 1)
		kv.compare_and_set("a", 1, 2)
		local id, job = tools.mcp_call("calc", "double", { n = 4 }), background(function() return 1 end)
		kv.delete("a")
		kv.set("b", kv.get("a", 5))
		local listed = kv.list()[1].value
		local value, status = tools.mcp_result(id)
		kv.set("c", value.n)
		return listed, value.n, status, select(2, tools.mcp_result(job))`})
	if err != nil || string(outcome.Result) != `[5,8,"complete","complete"]` {
		t.Fatalf("%s, %v", outcome.Result, err)
	}
	want := `1. would store the value "a"
2. would store the value "a"
3. would start a job that calls calc.double
4. would start a function as a job (N bytes)
5. would delete the value "a"
6. would store the value "b"
7. would store the value "c" (uncertain)
Entries marked uncertain follow a made-up answer that the script looked into.`
	plan := rehearsal.Plan()
	got := strings.Replace(host.PlanText(plan), fmt.Sprintf("(%d bytes)", len(functionOf(t, plan[3]))), "(N bytes)", 1)
	if got != want {
		t.Errorf("plan:\n%s", got)
	}
	stored, err := r.Run(t.Context(), Request{Source: `return #kv.list()`})
	if err != nil || string(stored.Result) != "0" || len(jobs.started) != 0 {
		t.Errorf("stored %s, %v, started %v", stored.Result, err, jobs.started)
	}
}

// functionOf returns the source of a function that would be started.
func functionOf(t *testing.T, p host.Planned) string {
	t.Helper()
	var args []json.RawMessage
	var source string
	if err := json.Unmarshal(p.Arguments, &args); err != nil || json.Unmarshal(args[1], &source) != nil {
		t.Fatalf("arguments %s: %v", p.Arguments, err)
	}
	return source
}
