package musicjob_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// fixture is a music backend with one model, and the database of its jobs.
type fixture struct {
	database *db.DB
	backend  *hootenanny.Backend
	pause    atomic.Bool   // jobs stop between the model's reply and the new artifact
	paused   chan struct{} // signalled when one has stopped
	requests atomic.Int64  // to the model
	status   atomic.Int64  // with which the model replies
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	file := smf.File{Tracks: []smf.Track{{Events: []smf.Event{smf.Note(0, 0, 60, 80), smf.Release(480, 0, 60)}}}}
	data, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{database: dbtest.Open(t, dbtest.Fresh(t)), paused: make(chan struct{})}
	f.status.Store(http.StatusOK)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.requests.Add(1)
		w.WriteHeader(int(f.status.Load()))
		_ = json.NewEncoder(w).Encode(map[string]any{ // a client that has disconnected needs no reply
			"detail": "out of memory", "variations": []map[string]any{{"midi_base64": base64.StdEncoding.EncodeToString(data), "num_tokens": 7}},
		})
	}))
	t.Cleanup(model.Close)
	files, err := artifact.OpenFiles(t.Context(), f.database, artifact.FilesOptions{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	f.backend, err = hootenanny.Open(t.Context(), f.database, hootenanny.Options{
		Files: files, HTTP: model.Client(), Services: hootenanny.Services{Orpheus: model.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.backend.Close(t.Context()) })
	return f
}

// RunJob runs music jobs. A script waits until it is cancelled.
func (f *fixture) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	if musicjob.Is(task.Spec) {
		report := task.Progress
		task.Progress = func(fraction float64, message string) {
			report(fraction, message)
			if f.pause.Load() && message == "storing the result" {
				f.paused <- struct{}{}
				<-ctx.Done()
			}
		}
		return musicjob.Run(ctx, f.backend, task)
	}
	<-ctx.Done()
	return job.Outcome{}, context.Cause(ctx)
}

// open opens the queue of the jobs, which has one place for scripts.
func (f *fixture) open(t *testing.T) musicjob.Queue {
	t.Helper()
	q, err := job.Open(context.WithoutCancel(t.Context()), f.database, f, job.Options{Workers: 1, Unlimited: musicjob.Is})
	if err != nil {
		t.Fatal(err)
	}
	return musicjob.Queue{Jobs: q}
}

func closeQueue(t *testing.T, q musicjob.Queue) {
	t.Helper()
	if err := q.Jobs.Close(); err != nil {
		t.Error(err)
	}
}

func submit(t *testing.T, q musicjob.Queue, tool string) string {
	t.Helper()
	j, err := q.Submit(t.Context(), hootenanny.JobSpec{Tool: tool, Params: json.RawMessage(`{}`), Creator: "ada", Tags: []string{"mood:calm"}})
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

func await(t *testing.T, q musicjob.Queue, id string) hootenanny.Job {
	t.Helper()
	done, pending, err := q.Poll(t.Context(), []string{id}, clocktest.Timeout, true)
	if err != nil || len(done) != 1 {
		t.Fatalf("ended %v, pending %v, %v", done, pending, err)
	}
	return done[0]
}

// TestQueue checks the view that the backend has of the job queue. A waiting script takes
// the only place in the queue, which music jobs do not need.
func TestQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	q := f.open(t)
	defer closeQueue(t, q)
	script, err := q.Jobs.Submit(t.Context(), job.Spec{Name: "wait.lua", Hash: "1234", Source: "wait()"})
	if err != nil || musicjob.Is(script.Spec) {
		t.Fatalf("a script is a music job: %+v, %v", script, err)
	}
	id := submit(t, q, "orpheus_generate")
	j := await(t, q, id)
	if j.State != "complete" || j.Tool != "orpheus_generate" || j.Creator != "ada" || j.Error != nil || j.Finished.IsZero() {
		t.Errorf("job %+v", j)
	}
	if !slices.Equal(j.Tags, []string{"mood:calm"}) {
		t.Errorf("tags %q, want those of the caller only", j.Tags)
	}
	var result struct {
		ArtifactID string `json:"artifact_id"`
	}
	if err := json.Unmarshal(j.Result, &result); err != nil || result.ArtifactID == "" {
		t.Errorf("result %s, %v", j.Result, err)
	}
	if _, err := f.backend.Artifact(t.Context(), result.ArtifactID); err != nil {
		t.Error(err)
	}
	if again, err := q.Status(t.Context(), id); err != nil || again.State != j.State || string(again.Result) != string(j.Result) {
		t.Errorf("status %+v, %v", again, err)
	}
	if done, err := q.Cancel(t.Context(), id); err != nil || done {
		t.Errorf("cancelled an ended job: %t, %v", done, err)
	}
	for state, want := range map[string]int{"": 1, "complete": 1, "running": 0} { // the script runs
		if jobs, total, err := q.List(t.Context(), state, 10); err != nil || len(jobs) != want || total != want {
			t.Errorf("state %q: %d jobs of %d, %v, want %d", state, len(jobs), total, err, want)
		}
	}
	if n, err := q.Active(t.Context()); n != 1 || err != nil {
		t.Errorf("%d active jobs, want the script", n)
	}
	if _, err := q.Status(t.Context(), "unknown"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an unknown job: %v", err)
	}
	if _, _, err := q.Poll(t.Context(), []string{"unknown"}, 0, true); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("poll of an unknown job: %v", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pause.Store(true)
	q := f.open(t)
	defer closeQueue(t, q)
	id := submit(t, q, "orpheus_generate")
	<-f.paused
	if done, err := q.Cancel(t.Context(), id); err != nil || !done {
		t.Errorf("Cancel = %t, %v", done, err)
	}
	if j := await(t, q, id); j.State != "cancelled" {
		t.Errorf("job %+v", j)
	}
}

// TestFailures checks that a failed job has the code and hint of its error.
func TestFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	q := f.open(t)
	defer closeQueue(t, q)
	f.status.Store(http.StatusInternalServerError)
	j := await(t, q, submit(t, q, "orpheus_generate"))
	if j.State != "failed" || j.Error == nil || j.Error.Code != fault.Upstream || j.Error.Msg != "orpheus replied with status 500: out of memory" || j.Error.Hint == "" {
		t.Errorf("job %+v, error %+v", j, j.Error)
	}
	if j := await(t, q, submit(t, q, "no_such_tool")); j.Error == nil || j.Error.Code != fault.NotFound {
		t.Errorf("job of an unknown tool: %+v", j.Error)
	}
	if _, err := musicjob.Run(t.Context(), nil, job.Task{}); fault.CodeOf(err) != fault.Unavailable || fault.HintOf(err) == "" {
		t.Errorf("without a backend: %v", err)
	}
}

// TestResume checks that a job that resumes takes the model's reply from its journal.
func TestResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pause.Store(true)
	first := f.open(t)
	id := submit(t, first, "orpheus_generate")
	<-f.paused
	closeQueue(t, first)

	f.pause.Store(false)
	f.status.Store(http.StatusInternalServerError) // a second request would fail the job
	second := f.open(t)
	defer closeQueue(t, second)
	if j := await(t, second, id); j.State != "complete" {
		t.Errorf("job %+v, error %+v", j, j.Error)
	}
	if n := f.requests.Load(); n != 1 {
		t.Errorf("%d requests to the model, want 1", n)
	}
}
