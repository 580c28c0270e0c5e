package processes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/programtest"
)

// The crash tests run the real server, kill it at random moments while jobs call a
// counting upstream, and compare the outcomes of the jobs with the counts.
const (
	crashKills = "LUANETTE_TEST_KILLS" // how often to kill; a few times by default
	crashSeed  = "LUANETTE_TEST_SEED"  // makes the moments repeat
	crashJobs  = 20                    // jobs that run at any time
	crashSteps = 50                    // calls of each
	crashSum   = crashSteps * (crashSteps + 1) * (2*crashSteps + 1) / 6
)

// crashScript adds up the squares of its steps, which the counter knows.
const crashScript = `
function main(params)
  local count, sum = mcp.counter[params.tool], 0
  for step = 1, params.steps do
    sum = sum + count { job = params.job, step = step }.square
  end
  return sum
end`

// TestServerKilledAtRandom checks that jobs with repeatable calls complete with the right
// result, however often the server is killed. No acknowledged job is lost, and no call
// with a recorded outcome is repeated.
func TestServerKilledAtRandom(t *testing.T) {
	t.Parallel()
	c := newCrash(t, "add")
	for range c.kills(6) {
		c.runAndKill(t)
	}
	for _, j := range c.finish(t) {
		if j.Status != "complete" || string(j.Result) != strconv.Itoa(crashSum) {
			t.Errorf("job %s ended %s with %s %+v", j.JobID, j.Status, j.Result, j.Error)
		}
	}
	c.check(t)
}

// TestServerKilledInsideWrites checks that no unrepeatable call is repeated: jobs that
// were killed inside one fail and name it, all others complete.
func TestServerKilledInsideWrites(t *testing.T) {
	t.Parallel()
	c := newCrash(t, "push")
	for range max(c.kills(4)/10, 4) {
		c.runAndKill(t)
	}
	unknown := 0
	for _, j := range c.finish(t) {
		made := c.counter.callsOf(c.acknowledged[j.JobID])
		last := 0
		for step, times := range made {
			last = max(last, step)
			if times != 1 {
				t.Errorf("job %s made step %d %d times", j.JobID, step, times)
			}
		}
		if j.Status == "complete" && string(j.Result) == strconv.Itoa(crashSum) && len(made) == crashSteps {
			continue
		}
		unknown++
		if j.Status != "failed" || j.Error == nil {
			t.Errorf("job %s ended %s with %s", j.JobID, j.Status, j.Result)
			continue
		}
		// The unknown step is the last that reached the counter, or the one after it.
		named := []string{fmt.Sprintf(`"step":%d}`, last), fmt.Sprintf(`"step":%d}`, last+1)}
		if !strings.Contains(j.Error.Message, "it is unknown whether counter.push(") ||
			!strings.Contains(j.Error.Message, named[0]) && !strings.Contains(j.Error.Message, named[1]) {
			t.Errorf("job %s made %d steps and failed with %q", j.JobID, last, j.Error.Message)
		}
	}
	t.Logf("%d of %d jobs were killed inside a call", unknown, len(c.acknowledged))
	c.check(t)
}

// crash is a data folder whose servers are killed.
type crash struct {
	server       *programtest.Server
	counter      *counter
	tool         string
	hash         string // of the script
	random       *rand.Rand
	acknowledged map[string]string // name of the job at the counter, by its acknowledged id
	open         []string          // ids of jobs that may still run
}

func newCrash(t *testing.T, tool string) *crash {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(crashSeed); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("%s=%d", crashSeed, seed)
	c := &crash{tool: tool, acknowledged: map[string]string{}}
	c.random = rand.New(rand.NewPCG(seed, 0)) // moments, not secrets
	var url string
	c.counter, url = serveCounter(t)
	c.server = programtest.New(t, counterConfig(url))
	c.server.Args = []string{"--config", "luanette.toml"}
	return c
}

// kills returns how often to kill the server.
func (c *crash) kills(few int) int {
	if n, err := strconv.Atoi(os.Getenv(crashKills)); err == nil {
		return n
	}
	return few
}

// start starts the server, with a number of its own for the counter.
func (c *crash) start(t *testing.T) {
	t.Helper()
	run, _ := c.server.Run()
	c.server.Env = append(keepJobs, fmt.Sprint("BOOT=", run))
	c.server.Start(t)
}

// runAndKill keeps a server busy until it is killed.
func (c *crash) runAndKill(t *testing.T) {
	t.Helper()
	c.start(t)
	if c.hash == "" { // the first server runs until it is busy
		c.hash = c.store(t)
		if err := c.keepBusy(); err != nil {
			t.Fatal(err)
		}
	}
	killed := make(chan struct{})
	time.AfterFunc(time.Duration(c.random.Int64N(int64(800*time.Millisecond))), func() {
		defer close(killed)
		c.server.Kill()
	})
	for c.keepBusy() == nil {
	}
	<-killed
}

func (c *crash) store(t *testing.T) string {
	t.Helper()
	var stored struct{ Hash string }
	if err := c.server.Call("script_store", map[string]any{"content": crashScript}, &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Hash
}

// keepBusy starts jobs until enough run, and waits for one to end. It
// returns an error when the server has ended.
func (c *crash) keepBusy() error {
	run, _ := c.server.Run()
	for len(c.open) < crashJobs {
		name := fmt.Sprint("job", len(c.acknowledged), ".", run)
		var started struct {
			JobID string `json:"job_id"`
		}
		params := map[string]any{"job": name, "steps": crashSteps, "tool": c.tool}
		if err := c.server.Call("lua_execute", map[string]any{"script_hash": c.hash, "params": params}, &started); err != nil {
			return err
		}
		c.acknowledged[started.JobID] = name
		c.open = append(c.open, started.JobID)
	}
	var polled struct{ Completed []crashJob }
	if err := c.server.Call("job_poll", map[string]any{"job_ids": c.open, "mode": "any", "timeout_ms": 60_000}, &polled); err != nil {
		return err
	}
	for _, j := range polled.Completed {
		c.open = slices.DeleteFunc(c.open, func(id string) bool { return id == j.JobID })
	}
	return nil
}

// crashJob is a job at its end.
type crashJob struct {
	JobID  string `json:"job_id"`
	Status string
	Result json.RawMessage
	Error  *struct{ Message string }
}

// finish runs a last server until all jobs have ended, and returns the acknowledged ones.
func (c *crash) finish(t *testing.T) (jobs []crashJob) {
	t.Helper()
	c.start(t)
	for id := range c.acknowledged {
		var polled struct {
			Completed []crashJob
		}
		for len(polled.Completed) == 0 {
			if err := c.server.Call("job_poll", map[string]any{"job_ids": []string{id}, "timeout_ms": 60_000}, &polled); err != nil {
				t.Fatalf("acknowledged job %s: %v", id, err)
			}
		}
		jobs = append(jobs, polled.Completed...)
	}
	return jobs
}

// check reports the problems that the counter recorded.
func (c *crash) check(t *testing.T) {
	t.Helper()
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	for _, problem := range c.counter.problems {
		t.Error(problem)
	}
	for _, m := range c.counter.twice {
		t.Error(m)
	}
	calls, repeated := 0, 0
	for _, name := range c.acknowledged {
		for _, times := range c.counter.calls[name] {
			calls++
			repeated += times - 1
		}
	}
	if len(c.acknowledged) < crashJobs {
		t.Errorf("%d jobs were acknowledged, want at least %d", len(c.acknowledged), crashJobs)
	}
	changes, _ := c.server.Run() // starts and kills
	t.Logf("%d kills, %d jobs, %d calls, %d of them repeated because their outcome was lost", changes/2, len(c.acknowledged), calls, repeated)
}
