package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
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
	"github.com/luanette/luanette/internal/base/programtest"
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
	load, end := context.WithCancel(t.Context()) // ends with a test that fails
	stop := load.Done()
	var clients sync.WaitGroup
	reader := f.watch(t)
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
		clients.Go(func() { f.chat(t, fmt.Sprint("user", n), stop) })
	}
	for range 3 {
		clients.Go(func() { f.useSession(t, stop) })
	}
	clients.Go(func() { f.publish(t, stop) })
	f.killNodes(t, time.Duration(seconds)*time.Second)
	end()
	clients.Wait()
	f.checkOrder(t)
	f.check(t)
	f.checkOnce(t)
	reader.check(t, f)
	f.report(t)
}

// testCluster is three nodes on one Postgres database, and what their clients did.
type testCluster struct {
	postgres *dbtest.Server
	store    *db.DB
	counter  *counter
	nodes    []*clusterNode
	hash     string // of the script that jobs run

	mu           sync.Mutex
	jobs         map[string]ackedJob // by acknowledged id
	answered     map[string]int      // answered messages by user
	names        map[string]string   // of nodes, by id
	detected     []time.Duration     // from a kill until the other nodes removed the node
	sessions     atomic.Int64        // turns of script sessions
	scripts      atomic.Int64        // published scripts
	sessionCalls atomic.Int64        // calls in MCP sessions
	moves        atomic.Int64        // of MCP sessions to another node
	retries      atomic.Int64
	kills        int
	lastKill     atomic.Pointer[time.Time]
}

// ackedJob is an acknowledged job.
type ackedJob struct {
	name    string // at the counter
	kind    work
	endedAt time.Time // when a client received its end
	unknown bool      // it failed because the outcome of a call is unknown
}

// work is the tool that a job calls.
type work string

const (
	repeatable   work = "add"
	unrepeatable work = "push"
)

// clusterNode is one node.
type clusterNode struct {
	programtest.Server
	name   string
	frozen atomic.Bool // its process is stopped with SIGSTOP
}

// startCluster starts three nodes. The lines in more are added to their configuration.
func startCluster(t *testing.T, more ...string) *testCluster {
	t.Helper()
	model := llmtest.New(func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })
	t.Cleanup(model.Close)
	f := &testCluster{postgres: dbtest.StartServer(t), jobs: map[string]ackedJob{}, answered: map[string]int{}, names: map[string]string{}}
	f.store = dbtest.Open(t, f.postgres.URL)
	var url string
	f.counter, url = serveCounter(t)
	folder := t.TempDir()
	for _, name := range []string{"ann", "bob", "cyd"} {
		c := &clusterNode{name: name, Server: programtest.Server{Folder: folder, Address: netguardtest.ReservedAddress(), Args: []string{"--data", name, "--config", "luanette.toml"}}}
		f.nodes = append(f.nodes, c)
		c.Configure(t, strings.Join(more, "\n")+fmt.Sprintf("\ndatabase = %q\n[log]\nlevel = \"error\"\n%s[chat]\nbase_url = %q\nrate = 100000\n", f.postgres.URL, counterConfig(url), model.URL))
		f.start(t, c)
	}
	var stored struct{ Hash string }
	f.until(t, "store a script", func(s *clusterNode) bool {
		return s.Call("script_store", map[string]any{"content": crashScript}, &stored) == nil
	})
	f.hash = stored.Hash
	f.noteMoves(t)
	return f
}

// start starts a node and waits until it listens.
func (f *testCluster) start(t *testing.T, c *clusterNode) {
	t.Helper()
	c.Env = append(keepJobs, "ANTHROPIC_API_KEY="+llmtest.Key, "LUANETTE_NODE="+c.name, "BOOT="+c.name+fmt.Sprint(time.Now().UnixNano()))
	c.Start(t)
}

// pick returns a random node that is not frozen. It may be down.
func (f *testCluster) pick() *clusterNode {
	c := f.nodes[rand.IntN(len(f.nodes))]
	for c.frozen.Load() {
		c = f.nodes[rand.IntN(len(f.nodes))]
	}
	return c
}

// patience is how long the nodes may take for something together: a job of a dead node waits
// until that is noticed, and the nodes may have been killed again meanwhile.
const patience = 5 * time.Minute

// client gives up requests that are not answered.
var client = &http.Client{Transport: httpjsontest.Client.Transport, Timeout: clocktest.Timeout}

// until tries one node after the other until one does what is asked.
func (f *testCluster) until(t *testing.T, what string, works func(*clusterNode) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := clocktest.Poll(ctx, func() bool {
		if works(f.pick()) {
			return true
		}
		f.retries.Add(1)
		return false
	})
	if !done && t.Context().Err() == nil { // the test has not ended
		t.Errorf("no node did this within %s: %s", patience, what)
	}
}

// isClosed reports whether the channel is closed.
func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// runJobs starts jobs on random nodes and waits for each.
func (f *testCluster) runJobs(t *testing.T, who string, kind work, stop <-chan struct{}) {
	for n := 0; !isClosed(stop); n++ {
		name := fmt.Sprint(who, ".", n)
		var started struct {
			JobID string `json:"job_id"`
		}
		params := map[string]any{"job": name, "steps": nodesJobSteps, "tool": string(kind)}
		// A job that was not acknowledged may run all the same, so the next has another name.
		err := f.pick().Call("lua_execute", map[string]any{"script_hash": f.hash, "params": params}, &started)
		if err != nil || started.JobID == "" {
			f.retries.Add(1)
			_ = clock.Real().Sleep(t.Context(), 20*time.Millisecond) // before the retry
			continue
		}
		f.await(t, started.JobID, ackedJob{name: name, kind: kind})
	}
}

// await waits for a job and checks its result.
func (f *testCluster) await(t *testing.T, id string, e ackedJob) {
	save := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.jobs[id] = e
	}
	save()
	defer save()
	f.until(t, "end the job "+id, func(s *clusterNode) bool {
		var polled struct{ Completed []crashJob }
		if s.Call("job_poll", map[string]any{"job_ids": []string{id}, "timeout_ms": 20_000}, &polled) != nil || len(polled.Completed) == 0 {
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

// chat sends one message after the other, and repeats each until it is answered.
func (f *testCluster) chat(t *testing.T, user string, stop <-chan struct{}) {
	for n := 0; !isClosed(stop); n++ {
		body, _ := json.Marshal(map[string]string{"client_id": "nodes", "user_id": user, "message": messageText(user, n), "message_key": strconv.Itoa(n)})
		f.until(t, fmt.Sprintf("answer message %d of %s", n, user), func(s *clusterNode) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/api/v1/chat", bytes.NewReader(body))
			if err != nil {
				return false
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(r)
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

// useSession increments a counter in a script session, each turn on a random node. A turn
// that is repeated counts once.
func (f *testCluster) useSession(t *testing.T, stop <-chan struct{}) {
	var made struct {
		SessionID string `json:"session_id"`
	}
	f.until(t, "create a session of scripts", func(s *clusterNode) bool {
		return s.Call("session_create", map[string]any{}, &made) == nil && made.SessionID != ""
	})
	for n := 1; !isClosed(stop); n++ {
		code := fmt.Sprintf("if last ~= %d then count, last = (count or 0) + 1, %d end return count", n, n)
		f.until(t, fmt.Sprintf("make turn %d of session %s", n, made.SessionID), func(s *clusterNode) bool {
			var answer struct{ Result json.RawMessage }
			if s.Call("lua_eval", map[string]any{"code": code, "session_id": made.SessionID}, &answer) != nil {
				return false
			}
			if string(answer.Result) != strconv.Itoa(n) {
				t.Errorf("session %s: the counter is %s in turn %d", made.SessionID, answer.Result, n)
			}
			return true
		})
		f.sessions.Add(1)
	}
}

// publish publishes versions of a script, and calls the tool on random nodes until it is
// the new version.
func (f *testCluster) publish(t *testing.T, stop <-chan struct{}) {
	for n := 1; !isClosed(stop); n++ {
		source := fmt.Sprintf("function describe() return { name = 'edition', description = 'Returns its version' } end\nfunction main() return %d end", n)
		var stored struct{ Hash string }
		f.until(t, "store a script", func(s *clusterNode) bool {
			return s.Call("script_store", map[string]any{"content": source}, &stored) == nil
		})
		f.until(t, "publish a script", func(s *clusterNode) bool {
			var published json.RawMessage
			return s.Call("script_publish", map[string]any{"script_hash": stored.Hash}, &published) == nil
		})
		f.until(t, fmt.Sprintf("call version %d of the tool", n), func(s *clusterNode) bool {
			var answer struct{ Result json.RawMessage }
			return s.Call("edition", map[string]any{}, &answer) == nil && string(answer.Result) == strconv.Itoa(n)
		})
		f.scripts.Add(1)
	}
}

// killNodes kills random nodes, and restarts Postgres once in the middle.
func (f *testCluster) killNodes(t *testing.T, duration time.Duration) {
	began, restarted := time.Now(), false
	for time.Since(began) < duration {
		_ = clock.Real().Sleep(t.Context(), time.Duration(1000+rand.IntN(3000))*time.Millisecond)
		if !restarted && time.Since(began) > duration/2 {
			f.postgres.Stop(t, "immediate")
			_ = clock.Real().Sleep(t.Context(), 2*time.Second)
			f.postgres.Start(t)
			restarted = true
			continue
		}
		f.killOne(t, f.nodes[rand.IntN(len(f.nodes))])
	}
}

// killOne kills a node and starts it again after the others have detected it.
func (f *testCluster) killOne(t *testing.T, c *clusterNode) {
	id := f.nodeID(t, c)
	c.Kill()
	f.kills++
	f.awaitDetection(t, id)
	f.start(t, c)
}

// nodeID returns the id of a node, or "" if the database does not list it.
func (f *testCluster) nodeID(t *testing.T, c *clusterNode) string {
	t.Helper()
	var all []node.Info
	clocktest.Await(t, func() (ok bool) { // a connection from before the restart of Postgres fails
		var err error
		all, err = node.List(t.Context(), f.store)
		return err == nil
	})
	for _, i := range all {
		if strings.HasSuffix(i.Address, c.Address) {
			f.names[i.ID] = c.name
			return i.ID
		}
	}
	return ""
}

// awaitDetection waits until the other nodes have removed a dead node.
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

// checkOrder reports the problems that the counter recorded. A node may repeat a step whose
// record it could not write because another node had taken the job over, once the job has
// come back.
func (f *testCluster) checkOrder(t *testing.T) {
	f.counter.mu.Lock()
	defer f.counter.mu.Unlock()
	for _, problem := range f.counter.problems {
		t.Error(problem)
	}
	for _, m := range f.counter.twice {
		if moves := f.movesOf(t, m.job); moves < 2 {
			t.Errorf("%v, and moved to another node %d times", m, moves)
		}
	}
}

// noteMoves lets the database count how often each job gets another node.
func (f *testCluster) noteMoves(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE job_moves (params BYTEA)",
		"CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO job_moves VALUES (NEW.params); RETURN NULL; END'",
		"CREATE TRIGGER note_move AFTER UPDATE OF node ON jobs FOR EACH ROW WHEN (OLD.node <> NEW.node) EXECUTE FUNCTION note_move()",
	} {
		if err := f.store.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// movesOf returns how often a job got another node.
func (f *testCluster) movesOf(t *testing.T, job string) (moves int) {
	t.Helper()
	clocktest.Await(t, func() bool { // a connection from before the restart of Postgres fails
		return f.store.QueryRow(t.Context(), "SELECT count(*) FROM job_moves WHERE encode(params, 'escape') LIKE '%\"' || $1 || '\"%'", job).Scan(&moves) == nil
	})
	return moves
}

// check checks that every job made all its steps, and the histories of all users.
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

// checkOnce checks that no job repeated an unrepeatable call, and that at least one such
// job completed.
func (f *testCluster) checkOnce(t *testing.T) {
	f.counter.mu.Lock()
	defer f.counter.mu.Unlock()
	for name, steps := range f.counter.calls {
		for step, times := range steps {
			if strings.HasPrefix(name, "once") && times > 1 {
				t.Errorf("job %s made the unrepeatable step %d %d times", name, step, times)
			}
		}
	}
	done := slices.ContainsFunc(slices.Collect(maps.Values(f.jobs)), func(e ackedJob) bool { return e.kind == unrepeatable && !e.unknown })
	if !done {
		t.Error("no job with unrepeatable calls completed")
	}
}

// report logs statistics.
func (f *testCluster) report(t *testing.T) {
	answers, once, unknown := 0, 0, 0
	for _, messages := range f.answered {
		answers += messages
	}
	for _, e := range f.jobs {
		if e.kind == unrepeatable {
			once++
		}
		if e.unknown {
			unknown++
		}
	}
	t.Logf("dead nodes were detected after %s", summarize(f.detected))
	t.Logf("%d kills, one restart of Postgres; %d jobs, %d of them unrepeatable, %d with an unknown outcome; %d messages, %d turns of script sessions, %d published scripts; %d calls in MCP sessions, %d moves to another node; %d retries",
		f.kills, len(f.jobs), once, unknown, answers, f.sessions.Load(), f.scripts.Load(), f.sessionCalls.Load(), f.moves.Load(), f.retries.Load())
}

// summarize formats the distribution of durations.
func summarize(times []time.Duration) string {
	if len(times) == 0 {
		return "-"
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
	f.until(t, "list the history of "+user, func(s *clusterNode) bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/orgs/default/users/"+user+"/history?limit=50", nil)
		if err != nil {
			return false
		}
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(&history) == nil && len(history.Entries) > 0
	})
	first := messages - len(history.Entries)
	for i, e := range history.Entries {
		if e.User != messageText(user, first+i) {
			t.Errorf("history of %s: %q, want %q", user, e.User, messageText(user, first+i))
		}
	}
}
