package processes

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// TestFrozenNode freezes a node while it works: its connections and locks stay. The other
// nodes consider it dead and continue its jobs. After it is resumed it joins them again
// and does not continue the jobs that they took over. No unrepeatable call is repeated,
// and every job ends.
func TestFrozenNode(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make nodes runs it: it waits for frozen nodes")
	}
	f := startCluster(t)
	load, stop := context.WithCancel(t.Context()) // ends with a test that fails
	var clients sync.WaitGroup
	reader := f.watch(t)
	for n := range 4 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("w", n), repeatable, load.Done()) })
	}
	for n := range 4 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("once", n), unrepeatable, load.Done()) })
	}
	for _, c := range f.nodes {
		f.awaitJobs(t, 20)
		f.freeze(t, c)
	}
	f.awaitJobs(t, 20)
	stop()
	clients.Wait()
	f.check(t)
	f.checkOnce(t)
	reader.check(t, f)
	if len(f.detected) != len(f.nodes) {
		t.Errorf("%d of %d frozen nodes were considered dead", len(f.detected), len(f.nodes))
	}
	t.Logf("frozen nodes were detected after %s; %d jobs", summarize(f.detected), len(f.jobs))
}

// longSteps is the number of calls of a job that runs when its node is frozen.
const longSteps = 500

// freeze stops a node's process during a job and resumes it after the others have
// finished that job.
func (f *testCluster) freeze(t *testing.T, c *clusterNode) {
	t.Helper()
	id, long := f.nodeID(t, c), f.startLongJob(t, c)
	c.frozen.Store(true)
	c.Signal(t, syscall.SIGSTOP)
	f.awaitDetection(t, id)
	f.until(t, "complete the job "+long+" of "+c.name+", which is frozen", func(s *clusterNode) bool {
		var polled struct{ Completed []crashJob }
		if s.Call("job_poll", map[string]any{"job_ids": []string{long}, "timeout_ms": 20_000}, &polled) != nil || len(polled.Completed) == 0 {
			return false
		}
		if j := polled.Completed[0]; j.Status != "complete" || string(j.Result) != strconv.Itoa(longSteps*(longSteps+1)*(2*longSteps+1)/6) {
			t.Errorf("the job of %s ended %s with %s %+v", c.name, j.Status, j.Result, j.Error)
		}
		return true
	})
	c.Signal(t, syscall.SIGCONT)
	c.frozen.Store(false)
	clocktest.Await(t, func() bool { return f.nodeID(t, c) == id }, func() string { return c.name + " did not join again after it was resumed" })
}

// startLongJob starts a job on a node, waits until it runs, and returns its id.
func (f *testCluster) startLongJob(t *testing.T, c *clusterNode) string {
	t.Helper()
	name := "long." + c.name
	var started struct {
		JobID string `json:"job_id"`
	}
	params := map[string]any{"job": name, "steps": longSteps, "tool": string(repeatable)}
	if err := c.Call("lua_execute", map[string]any{"script_hash": f.hash, "params": params}, &started); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return f.counter.hasCalled(name) }, func() string { return "the job " + started.JobID + " of " + c.name + " does not call" })
	return started.JobID
}

// awaitJobs waits until a number of further jobs have ended.
func (f *testCluster) awaitJobs(t *testing.T, more int) {
	t.Helper()
	count := func() (n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.jobs {
			if !e.endedAt.IsZero() {
				n++
			}
		}
		return n
	}
	want := count() + more
	clocktest.Await(t, func() bool { return count() >= want }, func() string { return fmt.Sprintf("%d of %d jobs have ended", count(), want) })
}
