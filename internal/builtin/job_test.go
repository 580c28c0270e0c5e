package builtin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// bank is a set of tools with an account: look reads it, pay changes it.
type bank struct {
	mu   sync.Mutex
	paid []string
	by   []string      // callers of the payments
	wait chan struct{} // signalled when a call arrives; a slow payment then waits to be cancelled

	holds    atomic.Bool   // the next call to "hold" waits
	released chan struct{} // there
}

// hold blocks the next call to "hold" until letGo.
func (b *bank) hold() {
	b.released = make(chan struct{})
	b.holds.Store(true)
}

func (b *bank) letGo() { close(b.released) }

func (b *bank) Tools(context.Context) ([]tool.Info, error) {
	object := json.RawMessage(`{"type":"object"}`)
	return []tool.Info{
		{Ref: tool.Ref{Space: "bank", Name: "look"}, Description: "Looks.", Input: object, Hints: tool.Hints{ReadOnly: true}},
		{Ref: tool.Ref{Space: "bank", Name: "pay"}, Description: "Pays.", Input: object,
			Output: json.RawMessage(`{"type":"object","properties":{"receipt":{"type":"string","examples":["R-0"]}}}`)},
	}, nil
}

func (b *bank) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ To string }
	_ = json.Unmarshal(call.Args, &in)
	if in.To == "here" {
		b.wait <- struct{}{}
	}
	if in.To == "hold" && b.holds.Swap(false) {
		b.wait <- struct{}{}
		<-b.released
	}
	if in.To == "slow" {
		b.wait <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if call.Ref.Name == "pay" {
		b.paid, b.by = append(b.paid, in.To), append(b.by, principal.Of(ctx).ID)
	}
	return tool.Output("ok", map[string]any{"receipt": "R-" + in.To, "balance": 100 - len(b.paid)})
}

func (b *bank) payments() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.paid)
}

// asJobs runs jobs with a script runner.
type asJobs struct{ runner *script.Runner }

func (a asJobs) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	outcome, err := a.runner.Run(ctx, script.Request{
		Source: task.Source, Name: task.Name, Creator: task.Creator, Params: task.Params, Main: true, Handler: task.Handler, Watch: task.Watch,
		Jobs: job.ForScripts{Queue: task.Queue}, Temp: task.Temp,
		Caller: &tool.Caller{ID: task.Creator, Progress: func(p tool.Progress) { task.Progress(p.Progress, p.Message) }},
	})
	return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
}

// jobFixture is a toolFixture in which jobs run.
type jobFixture struct {
	toolFixture
	bank   *bank
	queue  *job.Queue
	folder string // writable by scripts
}

func openJobs(t *testing.T) jobFixture {
	t.Helper()
	b := &bank{wait: make(chan struct{}, 1)}
	c := catalog.New(catalog.Options{Sources: []tool.Source{b}})
	scriptFixture, folder := newStudy(t, c), t.TempDir()
	runner := script.NewRunner(script.Options{
		Tools: c, Events: event.New(event.BusOptions{}), Log: slog.New(slog.DiscardHandler), Clock: clock.Real(), TempDir: t.TempDir(),
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: metricnoop.NewMeterProvider().Meter(""),
		Files: host.FilesOptions{Write: []string{folder}}, Commands: toucher{folder},
	})
	database, err := db.Open(context.Background(), dbtest.Fresh(t), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := job.Open(context.Background(), database, asJobs{runner}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
		_ = database.Close()
	})
	set := toolset.NewSet("", jobtools.Tools(queue, scriptFixture.scripts, runner), jobtools.Schedules(queue, scriptFixture.published), scripttools.Preview(runner, scriptFixture.sessions, scriptFixture.scripts, c),
		scripttools.Tools(runner, scriptFixture.scripts, scriptFixture.published, scriptFixture.sessions),
		searchtools.Tools(c, findable(scriptFixture)), scripttools.Code(runner, scriptFixture.sessions, scripttools.CodeOptions{}))
	c.Add(set)
	return jobFixture{toolFixture{catalog: c, set: set, scriptFixture: scriptFixture}, b, queue, folder}
}

// toucher is a Commands whose programs create a file.
type toucher struct{ folder string }

func (p toucher) Run(_ context.Context, name string, _ []string) (host.CommandResult, error) {
	return host.CommandResult{}, os.WriteFile(filepath.Join(p.folder, name), nil, 0o600)
}

// start stores a script and runs it as a job.
func (o jobFixture) start(t *testing.T, source, params string) string {
	t.Helper()
	var started struct {
		JobID string `json:"job_id"`
	}
	o.mustCall(t, "lua_execute", `{"script":"cas:`+o.storeScript(t, source, "")+`","params":`+params+`,"tags":["test"]}`, &started)
	return started.JobID
}

type jobAnswer struct {
	Status string
	Result json.RawMessage
	Error  *struct{ Code, Message string }
}

func (o jobFixture) wait(t *testing.T, id string) jobAnswer {
	t.Helper()
	var polled struct {
		Completed []jobAnswer
		TimedOut  bool `json:"timed_out"`
	}
	o.mustCall(t, "job_poll", `{"job_ids":["`+id+`"],"timeout_ms":60000}`, &polled)
	if polled.TimedOut || len(polled.Completed) != 1 {
		t.Fatalf("poll %+v", polled)
	}
	return polled.Completed[0]
}

func TestJobTools(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	id := o.start(t, `function main(p)
		print("paying " .. p.to)
		progress(0.5, "half")
		local before = mcp.bank.look{}.balance
		return { receipt = mcp.bank.pay{ to = p.to }.receipt, before = before }
	end`, `{"to":"amy"}`)
	if j := o.wait(t, id); j.Status != "complete" || string(j.Result) != `{"before":100,"receipt":"R-amy"}` && string(j.Result) != `{"receipt":"R-amy","before":100}` {
		t.Errorf("job %+v", j)
	}
	var status jobAnswer
	if o.mustCall(t, "job_status", `{"job_id":"`+id+`"}`, &status); status.Status != "complete" {
		t.Errorf("status %+v", status)
	}
	var logs struct{ Lines []struct{ Text string } }
	if o.mustCall(t, "job_logs", `{"job_id":"`+id+`"}`, &logs); len(logs.Lines) != 1 || logs.Lines[0].Text != "paying amy" {
		t.Errorf("logs %+v", logs)
	}
	var journal struct{ Steps []struct{ Call, Kind string } }
	o.mustCall(t, "job_journal", `{"job_id":"`+id+`"}`, &journal)
	var calls []string
	for _, step := range journal.Steps {
		if !strings.HasPrefix(step.Call, "mcp.has(") { // whether a tool exists
			calls = append(calls, step.Kind+" "+step.Call)
		}
	}
	if want := []string{"moment random.seed()", "read bank.look({})", `write bank.pay({"to":"amy"})`}; !slices.Equal(calls, want) {
		t.Errorf("journal %q, want %q", calls, want)
	}
	var replayed struct {
		Result   json.RawMessage
		Diverged bool
		Error    *struct{ Message string }
	}
	o.mustCall(t, "job_replay", `{"job_id":"`+id+`"}`, &replayed)
	if replayed.Diverged || string(replayed.Result) != string(status.Result) {
		t.Errorf("replay %+v", replayed)
	}
	code, _ := json.Marshal(`function main(p) mcp.bank.look{} pcall(mcp.bank.pay, { to = "bob" }) return 1 end`)
	o.mustCall(t, "job_replay", `{"job_id":"`+id+`","code":`+string(code)+`}`, &replayed)
	if !replayed.Diverged || !strings.Contains(replayed.Error.Message, "amy") || !strings.Contains(replayed.Error.Message, "bob") {
		t.Errorf("another script: %s", replayed.Error.Message)
	}
	if paid := o.bank.payments(); !slices.Equal(paid, []string{"amy"}) {
		t.Errorf("paid %q, want only amy once", paid)
	}
	var list struct{ Total int }
	for filter, want := range map[string]int{`{"status":"complete","tag":"test"}`: 1, `{"since":1}`: 1, `{"since":99999999999}`: 0, `{"script":"nobody"}`: 0} {
		if o.mustCall(t, "job_list", filter, &list); list.Total != want {
			t.Errorf("%s: %d jobs, want %d", filter, list.Total, want)
		}
	}
	var stats struct{ Total, Complete int }
	if o.mustCall(t, "job_stats", `{}`, &stats); stats.Total != 1 || stats.Complete != 1 {
		t.Errorf("stats %+v", stats)
	}
}

// TestScheduleShowsItsVersion checks that a schedule shows which version of a published script
// it runs, with which parameters, and that there is a newer one.
func TestScheduleShowsItsVersion(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	publish := func(answer string) string {
		t.Helper()
		hash := o.storeScript(t, `function describe() return {name="hourly"} end function main() return `+answer+` end`, "")
		o.mustCall(t, "script_publish", `{"script_hash":"`+hash+`"}`, &struct{}{})
		return hash
	}
	o.mustCall(t, "lua_execute", `{"script_hash":"`+publish("1")+`","params":{"to":"amy"},"schedule":"@hourly"}`, &struct{}{})
	list := func() (only jobtools.ScheduleView) {
		t.Helper()
		var list jobtools.ScheduleList
		if o.mustCall(t, "schedule_list", `{}`, &list); len(list.Schedules) != 1 {
			t.Fatalf("%+v", list)
		}
		return list.Schedules[0]
	}
	if s := list(); s.Version != "hourly@1" || s.Published != "" || string(s.Params) != `{"to":"amy"}` || !strings.Contains(s.Text(), `, hourly@1 {"to":"amy"}, next run`) {
		t.Errorf("%+v: %s", s, s.Text())
	}
	publish("2")
	if s := list(); s.Version != "hourly@1" || s.Published != "hourly@2" || !strings.Contains(s.Text(), `, hourly@1 (hourly@2 is published now) {"to"`) {
		t.Errorf("%+v: %s", s, s.Text())
	}
	o.mustCall(t, "script_unpublish", `{"name":"hourly"}`, &struct{}{})
	if s := list(); s.Version != "hourly@1" || s.Published != "" {
		t.Errorf("%+v", s)
	}
}

// TestJobTellsItsParams has what a retry needs.
func TestJobTellsItsParams(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	id := o.start(t, "function main(p) return p.n end", `{"n":1}`)
	var status struct{ Params json.RawMessage }
	if o.mustCall(t, "job_status", `{"job_id":"`+id+`"}`, &status); string(status.Params) != `{"n":1}` {
		t.Errorf("params %s", status.Params)
	}
}

func TestJobCancelStopsLoopsAndCalls(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	for _, body := range []string{`mcp.bank.look{ to = "here" } while true do end`, `mcp.bank.pay{ to = "slow" }`, `pcall(mcp.bank.pay, { to = "slow" }) mcp.bank.pay{ to = "late" }`} {
		id := o.start(t, "function main() "+body+" end", "{}")
		<-o.bank.wait
		var cancelled struct{ Success bool }
		if o.mustCall(t, "job_cancel", `{"job_id":"`+id+`"}`, &cancelled); !cancelled.Success {
			t.Error("not cancelled")
		}
		if j := o.wait(t, id); j.Status != "cancelled" {
			t.Errorf("job %+v", j)
		}
	}
	if paid := o.bank.payments(); len(paid) > 0 {
		t.Errorf("paid %q after the cancel", paid)
	}
}

func TestUnknownJobsAreNamed(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	for name, args := range map[string]string{
		"job_status": `{"job_id":"ghost"}`, "job_cancel": `{"job_id":"ghost"}`, "job_logs": `{"job_id":"ghost"}`, "job_journal": `{"job_id":"ghost"}`,
		"job_replay": `{"job_id":"ghost"}`, "job_poll": `{"job_ids":["ghost"],"timeout_ms":10}`,
	} {
		view, err := o.call(t, name, args)
		if err != nil || !view.IsError || !strings.Contains(view.Text(), "ghost") {
			t.Errorf("%s: %s (%v)", name, view.Text(), err)
		}
	}
	view, err := o.call(t, "lua_execute", `{"script_hash":"0123456789abcdef"}`)
	if err != nil || !view.IsError {
		t.Errorf("a script that is not there: %s (%v)", view.Text(), err)
	}
	view, err = o.call(t, "lua_execute", `{"script":"function main() return 1 end"}`)
	if err != nil || !view.IsError || !strings.Contains(view.Text(), "script_store") {
		t.Errorf("a script in place of its hash: %s (%v)", view.Text(), err)
	}
}

func TestJobResources(t *testing.T) {
	t.Parallel()
	o := openJobs(t)
	id := o.start(t, "function main() return 42 end", "{}")
	o.wait(t, id)
	resources := builtin.NewResources(jobtools.Resources(o.queue))
	for uri, want := range map[string]string{"lua://jobs": id, "lua://jobs/stats": `\"complete\": 1`, "lua://jobs/" + id: `\"result\": 42`} {
		raw, err := resources.ReadResource(t.Context(), uri, nil)
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s (%v)", uri, raw, err)
		}
	}
}
