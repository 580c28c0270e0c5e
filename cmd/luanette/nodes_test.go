package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// nodesSeconds says for how long nodes are killed; without it the test is skipped.
const nodesSeconds = "LUANETTE_TEST_NODES"

const (
	nodesJobSteps = 10
	nodesJobSum   = nodesJobSteps * (nodesJobSteps + 1) * (2*nodesJobSteps + 1) / 6
)

// TestNodesKilledAtRandom runs three nodes on one Postgres database. While they work, one
// after the other is killed and restarted, and Postgres is restarted once. Clients use
// any node, and retry on another when it is unreachable. Acknowledged work must be done
// exactly once, and each user's messages must be answered in order.
func TestNodesKilledAtRandom(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv(nodesSeconds))
	if seconds == 0 {
		t.Skip("make nodes runs it: it takes minutes")
	}
	f := startCluster(t)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	looked := f.watch(t)
	for n := range 4 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("w", n), repeatable, stop) })
	}
	for n := range 2 {
		clients.Go(func() { f.runJobs(t, fmt.Sprint("once", n), unrepeatable, stop) })
	}
	for range 4 {
		clients.Go(func() { f.useClientSession(t, stop) })
	}
	for n := range 6 {
		clients.Go(func() { f.chat(t, fmt.Sprint("person", n), stop) })
	}
	for range 3 {
		clients.Go(func() { f.useSession(t, stop) })
	}
	clients.Go(func() { f.publish(t, stop) })
	f.killNodes(t, time.Duration(seconds)*time.Second)
	close(stop)
	clients.Wait()
	f.checkOrder(t)
	f.check(t)
	f.checkOnce(t)
	looked.check(t, f)
	f.report(t)
}

type testCluster struct {
	folder   string
	postgres *dbtest.Server
	store    *db.DB
	counter  *counter
	nodes    []*clusterNode
	hash     string // of the script that jobs run

	mu           sync.Mutex
	jobs         map[string]ackedJob // by acknowledged id
	answered     map[string]int      // messages answered, by person
	names        map[string]string   // of nodes, by id
	detected     []time.Duration     // from a kill to the end of its node's row
	sessions     atomic.Int64        // turns
	scripts      atomic.Int64        // published
	sessionCalls atomic.Int64        // calls within clients' sessions
	moves        atomic.Int64        // of clients' sessions to another node
	retries      atomic.Int64
	kills        int
	lastKill     atomic.Pointer[time.Time]
}

// ackedJob is an acknowledged job.
type ackedJob struct {
	name    string // at the counter
	kind    work
	endedAt time.Time // when a client received its end
	unknown bool      // it reports that the outcome of a call is unknown
}

// work is what kind of calls a job makes.
type work string

const (
	repeatable   work = "add"
	unrepeatable work = "push"
)

// clusterNode is one node.
type clusterNode struct {
	name, address string
	mu            sync.Mutex
	cmd           *exec.Cmd
	run           int         // grows with each start and each kill: even while it lives
	frozen        atomic.Bool // a balancer would have noticed
	output        chan string // what it said after it had started, once it has ended
}

// currentRun returns the number of the node's current run, or false while it is down.
func (c *clusterNode) currentRun() (life int, up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run, c.run%2 == 0
}

// startCluster starts three nodes, with more lines at the head of their configuration.
func startCluster(t *testing.T, more ...string) *testCluster {
	t.Helper()
	model := llmtest.New(func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	t.Cleanup(model.Close)
	f := &testCluster{folder: t.TempDir(), postgres: dbtest.StartServer(t), jobs: map[string]ackedJob{}, answered: map[string]int{}, names: map[string]string{}}
	f.store = dbtest.Open(t, f.postgres.URL)
	var url string
	f.counter, url = serveCounter(t)
	config := strings.Join(more, "\n") + fmt.Sprintf("\ndatabase = %q\n[log]\nlevel = \"error\"\n[upstreams.counter]\nurl = %q\nwait = \"1m\"\nheaders = { %q = \"${BOOT}\" }\n[chat]\nbase_url = %q\nrate = 100000\n",
		f.postgres.URL, url, bootHeader, model.URL)
	if err := os.WriteFile(filepath.Join(f.folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob", "cyd"} {
		c := &clusterNode{name: name, address: netguardtest.ReservedAddress(), run: 1}
		f.nodes = append(f.nodes, c)
		f.start(t, c)
		t.Cleanup(c.kill)
	}
	var stored struct{ Hash string }
	f.until(t, func(s *crashServer) bool {
		return s.call("script_store", map[string]any{"content": crashScript}, &stored) == nil
	})
	f.hash = stored.Hash
	return f
}

// start starts a node and waits until it is ready.
func (f *testCluster) start(t *testing.T, c *clusterNode) {
	t.Helper()
	path, err := exec.LookPath("luanette")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--listen", c.address, "--data", c.name, "--config", "luanette.toml")
	cmd.Dir = f.folder
	cmd.Env = []string{
		"HOME=" + f.folder, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=" + llmtest.Key, "LUANETTE_NODE=" + c.name,
		"BOOT=" + c.name + fmt.Sprint(time.Now().UnixNano()),
		"LUANETTE_JOBS_KEEP_COMPLETE=24h", "LUANETTE_JOBS_KEEP_FAILED=24h", "LUANETTE_JOBS_TIMEOUT=10m",
	}
	log := &bytes.Buffer{}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.cmd = cmd
	c.mu.Unlock()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
		if strings.Contains(lines.Text(), "is listening on") {
			last := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(stderr)
				last <- string(text)
			}()
			c.mu.Lock()
			c.run++
			c.output = last
			c.mu.Unlock()
			return
		}
	}
	t.Errorf("node %s did not start:\n%s", c.name, log)
}

func (c *clusterNode) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run += 1 - c.run%2 // before a client can notice
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// pick returns a node, running or not, but no frozen one.
func (f *testCluster) pick() *crashServer {
	c := f.nodes[rand.IntN(len(f.nodes))]
	for c.frozen.Load() {
		c = f.nodes[rand.IntN(len(f.nodes))]
	}
	return &crashServer{url: "http://" + c.address}
}

// until tries one node after the other until a request succeeds.
func (f *testCluster) until(t *testing.T, works func(*crashServer) bool) {
	clocktest.Poll(t.Context(), func() bool {
		if works(f.pick()) {
			return true
		}
		f.retries.Add(1)
		return false
	})
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// runJobs starts jobs and waits for each at whatever node.
func (f *testCluster) runJobs(t *testing.T, who string, kind work, stop <-chan struct{}) {
	for n := 0; !isClosed(stop); n++ {
		name := fmt.Sprint(who, ".", n)
		var started struct {
			JobID string `json:"job_id"`
		}
		params := map[string]any{"job": name, "steps": nodesJobSteps, "tool": string(kind)}
		// One that was not acknowledged may have begun: the next try has another name.
		err := f.pick().call("lua_execute", map[string]any{"script_hash": f.hash, "params": params}, &started)
		if err != nil || started.JobID == "" {
			f.retries.Add(1)
			_ = clock.Real().Sleep(t.Context(), 20*time.Millisecond) // as a client that tries again
			continue
		}
		f.await(t, started.JobID, ackedJob{name: name, kind: kind})
	}
}

// await waits for a job and looks at its result.
func (f *testCluster) await(t *testing.T, id string, e ackedJob) {
	note := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.jobs[id] = e
	}
	note()
	defer note()
	f.until(t, func(s *crashServer) bool {
		var polled struct{ Completed []crashJob }
		if s.call("job_poll", map[string]any{"job_ids": []string{id}, "timeout_ms": 20_000}, &polled) != nil || len(polled.Completed) == 0 {
			return false
		}
		e.endedAt = time.Now()
		j := polled.Completed[0]
		e.unknown = e.kind == unrepeatable && j.Status == "failed" && j.Error != nil && strings.Contains(j.Error.Message, "it is unknown whether counter.push(")
		if !e.unknown && (j.Status != "complete" || string(j.Result) != strconv.Itoa(nodesJobSum)) {
			t.Errorf("job %s ended %s with %s %+v", id, j.Status, j.Result, j.Error)
		}
		return true
	})
}

// chat says one message after the other, each until it is answered.
func (f *testCluster) chat(t *testing.T, user string, stop <-chan struct{}) {
	for n := 0; !isClosed(stop); n++ {
		body, _ := json.Marshal(map[string]string{"client_id": "nodes", "user_id": user, "message": messageText(user, n), "message_key": strconv.Itoa(n)})
		f.until(t, func(s *crashServer) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v1/chat", bytes.NewReader(body))
			if err != nil {
				return false
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := httpjsontest.Client.Do(r)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			return err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), messageText(user, n))
		})
		f.mu.Lock()
		f.answered[user] = n + 1
		f.mu.Unlock()
	}
}

// useSession counts in a session, turn by turn at whatever node. A turn that is
// tried again counts once.
func (f *testCluster) useSession(t *testing.T, stop <-chan struct{}) {
	var made struct {
		SessionID string `json:"session_id"`
	}
	f.until(t, func(s *crashServer) bool {
		return s.call("session_create", map[string]any{}, &made) == nil && made.SessionID != ""
	})
	for n := 1; !isClosed(stop); n++ {
		code := fmt.Sprintf("if last ~= %d then count, last = (count or 0) + 1, %d end return count", n, n)
		f.until(t, func(s *crashServer) bool {
			var answer struct{ Result json.RawMessage }
			if s.call("lua_eval", map[string]any{"code": code, "session_id": made.SessionID}, &answer) != nil {
				return false
			}
			if string(answer.Result) != strconv.Itoa(n) {
				t.Errorf("session %s: turn %d finds %s", made.SessionID, n, answer.Result)
			}
			return true
		})
		f.sessions.Add(1)
	}
}

// publish publishes versions of a script, and calls each at whatever node until it
// is there.
func (f *testCluster) publish(t *testing.T, stop <-chan struct{}) {
	for n := 1; !isClosed(stop); n++ {
		source := fmt.Sprintf("function describe() return { name = 'edition', description = 'Which one' } end\nfunction main() return %d end", n)
		var stored struct{ Hash string }
		f.until(t, func(s *crashServer) bool {
			return s.call("script_store", map[string]any{"content": source}, &stored) == nil
		})
		f.until(t, func(s *crashServer) bool {
			var published json.RawMessage
			return s.call("script_publish", map[string]any{"script_hash": stored.Hash}, &published) == nil
		})
		f.until(t, func(s *crashServer) bool {
			var answer struct{ Result json.RawMessage }
			return s.call("edition", map[string]any{}, &answer) == nil && string(answer.Result) == strconv.Itoa(n)
		})
		f.scripts.Add(1)
	}
}

// killNodes kills nodes for so long, and restarts Postgres in the middle.
func (f *testCluster) killNodes(t *testing.T, long time.Duration) {
	began, restarted := time.Now(), false
	for time.Since(began) < long {
		_ = clock.Real().Sleep(t.Context(), time.Duration(1000+rand.IntN(3000))*time.Millisecond)
		if !restarted && time.Since(began) > long/2 {
			f.postgres.Stop(t, "immediate")
			_ = clock.Real().Sleep(t.Context(), 2*time.Second)
			f.postgres.Start(t)
			restarted = true
			continue
		}
		f.killOne(t, f.nodes[rand.IntN(len(f.nodes))])
	}
}

// killOne kills a node and starts it again when the others have noticed.
func (f *testCluster) killOne(t *testing.T, c *clusterNode) {
	id := f.nodeID(t, c)
	c.kill()
	f.kills++
	f.awaitDetection(t, id)
	f.start(t, c)
}

// nodeID is what a node's row is called, or "" when it has none.
func (f *testCluster) nodeID(t *testing.T, c *clusterNode) string {
	t.Helper()
	var all []node.Info
	clocktest.Await(t, func() (ok bool) { // the connection may be one of before Postgres was restarted
		var err error
		all, err = node.List(t.Context(), f.store)
		return err == nil
	})
	for _, i := range all {
		if strings.HasSuffix(i.Address, c.address) {
			f.names[i.ID] = c.name
			return i.ID
		}
	}
	return ""
}

// awaitDetection waits until the others have noticed that a node does not live any more.
func (f *testCluster) awaitDetection(t *testing.T, id string) {
	t.Helper()
	killed := time.Now()
	f.lastKill.Store(&killed)
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	if id != "" && clocktest.Poll(ctx, func() bool {
		now, err := node.List(ctx, f.store)
		return err == nil && !slices.ContainsFunc(now, func(i node.Info) bool { return i.ID == id })
	}) {
		f.detected = append(f.detected, time.Since(killed))
	}
}

// checkOrder looks at what the counter found wrong. A dead node makes no calls.
func (f *testCluster) checkOrder(t *testing.T) {
	f.counter.mu.Lock()
	defer f.counter.mu.Unlock()
	for _, problem := range f.counter.problems {
		t.Error(problem)
	}
}

// check looks at what is left when all is quiet.
func (f *testCluster) check(t *testing.T) {
	for id, e := range f.jobs {
		for step := range nodesJobSteps {
			if made := f.counter.callsOf(e.name)[step+1]; made < 1 && !e.unknown {
				t.Errorf("job %s did not make step %d", id, step+1)
			}
		}
	}
	for user, messages := range f.answered {
		f.checkHistory(t, user, messages)
	}
}

// checkOnce looks at calls that must not be made twice: none was, by no job, were
// it acknowledged or not, and not every job was in doubt.
func (f *testCluster) checkOnce(t *testing.T) {
	f.counter.mu.Lock()
	defer f.counter.mu.Unlock()
	for name, steps := range f.counter.calls {
		for step, times := range steps {
			if strings.HasPrefix(name, "once") && times > 1 {
				t.Errorf("job %s made step %d, which must not be repeated, %d times", name, step, times)
			}
		}
	}
	done := slices.ContainsFunc(slices.Collect(maps.Values(f.jobs)), func(e ackedJob) bool { return e.kind == unrepeatable && !e.unknown })
	if !done {
		t.Error("no job came to its end whose calls must not be repeated")
	}
}

// report logs what was done.
func (f *testCluster) report(t *testing.T) {
	answers, once, doubts := 0, 0, 0
	for _, messages := range f.answered {
		answers += messages
	}
	for _, e := range f.jobs {
		if e.kind == unrepeatable {
			once++
		}
		if e.unknown {
			doubts++
		}
	}
	t.Logf("a dead node was noticed after %s", summarize(f.detected))
	t.Logf("%d kills, one restart of Postgres; %d jobs, %d of them not to be repeated, %d of those in doubt; %d messages, %d turns of sessions, %d published scripts; %d calls of clients with a session, %d times one moved; %d tries were made again",
		f.kills, len(f.jobs), once, doubts, answers, f.sessions.Load(), f.scripts.Load(), f.sessionCalls.Load(), f.moves.Load(), f.retries.Load())
}

// summarize formats the distribution of durations.
func summarize(times []time.Duration) string {
	if len(times) == 0 {
		return "no time: it did not happen"
	}
	slices.Sort(times)
	return fmt.Sprintf("%s (median), %s (slowest), of %d", times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), len(times))
}

// checkHistory compares the end of a user's stored history with the sent messages.
func (f *testCluster) checkHistory(t *testing.T, user string, messages int) {
	var history struct {
		Entries []struct {
			User string `json:"user_message"`
		}
	}
	f.until(t, func(s *crashServer) bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/orgs/default/users/"+user+"/history?limit=50", nil)
		if err != nil {
			return false
		}
		answer, err := httpjsontest.Client.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(&history) == nil && len(history.Entries) > 0
	})
	first := messages - len(history.Entries)
	for i, e := range history.Entries {
		if e.User != messageText(user, first+i) {
			t.Errorf("%s: kept %q where %q was said", user, e.User, messageText(user, first+i))
		}
	}
}
