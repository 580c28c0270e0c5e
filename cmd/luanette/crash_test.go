package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
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
	counter      *counter
	tool         string
	folder       string
	hash         string // of the script
	random       *rand.Rand
	boots        int
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
	c := &crash{tool: tool, folder: t.TempDir(), acknowledged: map[string]string{}}
	c.random = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // moments, not secrets
	var url string
	c.counter, url = serveCounter(t)
	config := fmt.Sprintf("[upstreams.counter]\nurl = %q\nwait = \"1m\"\nheaders = { %q = \"${BOOT}\" }\n", url, bootHeader)
	if err := os.WriteFile(filepath.Join(c.folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// kills returns how often to kill the server.
func (c *crash) kills(few int) int {
	if n, err := strconv.Atoi(os.Getenv(crashKills)); err == nil {
		return n
	}
	return few
}

// crashServer is a running server.
type crashServer struct {
	cmd *exec.Cmd
	url string
}

// start starts a server on the data folder and waits until it listens.
func (c *crash) start(t *testing.T) *crashServer {
	t.Helper()
	c.boots++
	s := &crashServer{cmd: program(t.Context(), c.folder, []string{
		fmt.Sprintf("BOOT=%d", c.boots), "LUANETTE_JOBS_KEEP_COMPLETE=24h", "LUANETTE_JOBS_KEEP_FAILED=24h", "LUANETTE_JOBS_TIMEOUT=10m",
	}, "serve", "--listen", "127.0.0.1:0", "--data", "data", "--config", "luanette.toml")}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	var err error
	if s.url, _, err = startServing(s.cmd); err != nil {
		t.Fatal(err)
	}
	return s
}

// runAndKill keeps a server busy until it is killed.
func (c *crash) runAndKill(t *testing.T) {
	t.Helper()
	s := c.start(t)
	if c.hash == "" { // the first server runs until it is busy
		c.hash = c.store(t, s)
		if err := c.keepBusy(s); err != nil {
			t.Fatal(err)
		}
	}
	time.AfterFunc(time.Duration(c.random.Int64N(int64(800*time.Millisecond))), func() { _ = s.cmd.Process.Kill() })
	for c.keepBusy(s) == nil {
	}
	_ = s.cmd.Wait()
}

func (c *crash) store(t *testing.T, s *crashServer) string {
	t.Helper()
	var stored struct{ Hash string }
	if err := s.call("script_store", map[string]any{"content": crashScript}, &stored); err != nil {
		t.Fatal(err)
	}
	return stored.Hash
}

// keepBusy starts jobs until enough run, and waits for one to end. It
// returns an error when the server has ended.
func (c *crash) keepBusy(s *crashServer) error {
	for len(c.open) < crashJobs {
		name := fmt.Sprint("job", len(c.acknowledged), ".", c.boots)
		var started struct {
			JobID string `json:"job_id"`
		}
		params := map[string]any{"job": name, "steps": crashSteps, "tool": c.tool}
		if err := s.call("lua_execute", map[string]any{"script_hash": c.hash, "params": params}, &started); err != nil {
			return err
		}
		c.acknowledged[started.JobID] = name
		c.open = append(c.open, started.JobID)
	}
	var polled struct{ Completed []crashJob }
	if err := s.call("job_poll", map[string]any{"job_ids": c.open, "mode": "any", "timeout_ms": 60_000}, &polled); err != nil {
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
	s := c.start(t)
	defer func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		_ = s.cmd.Wait()
	}()
	for id := range c.acknowledged {
		var polled struct {
			Completed []crashJob
		}
		for len(polled.Completed) == 0 {
			if err := s.call("job_poll", map[string]any{"job_ids": []string{id}, "timeout_ms": 60_000}, &polled); err != nil {
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
	t.Logf("%d kills, %d jobs, %d calls, %d of them repeated because their outcome was lost", c.boots-1, len(c.acknowledged), calls, repeated)
}

// call calls a tool of the server.
func (s *crashServer) call(name string, args map[string]any, into any) error {
	const revision = "2026-07-28"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": name, "arguments": args, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", bytes.NewReader(body))
	if err != nil {
		return err
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json",
		"Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(key, value)
	}
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Error  *struct{ Message string }
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	switch {
	case answer.Error != nil:
		return errors.New(answer.Error.Message)
	case answer.Result.IsError:
		return errors.New(answer.Result.Content[0].Text)
	}
	return json.Unmarshal(answer.Result.StructuredContent, into)
}
