package job_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// The crash test starts itself as a child that runs jobs against a server of the
// parent, and kills it at random moments.
const (
	crashChild   = "LUANETTE_CRASH_CHILD" // set for the child: the parent's server
	crashData    = "LUANETTE_CRASH_DATA"  // the child's database
	crashLast    = "LUANETTE_CRASH_LAST"  // true for the last child, which is not killed
	crashKills   = "LUANETTE_CRASH_KILLS" // number of kills; 20 by default
	crashSeed    = "LUANETTE_CRASH_SEED"  // makes the times of the kills reproducible
	crashJobs    = 20                     // unfinished jobs at any time
	crashSteps   = 50                     // effects of each
	crashRisky   = 4                      // one job in so many makes calls that must not be repeated
	crashCreator = "crash"                // their creator
)

// counter is the upstream: it records every call and any error of it.
type counter struct {
	mu       sync.Mutex
	last     map[string]int            // the highest step of each job
	times    map[string]map[int]int    // calls by job and step
	by       map[string]map[int]string // the process that made the last of them
	problems []string

	connections atomic.Int64 // open connections
}

func newCounter() *counter {
	return &counter{last: map[string]int{}, times: map[string]map[int]int{}, by: map[string]map[int]string{}}
}

func (c *counter) start() *httptest.Server {
	server := httptest.NewUnstartedServer(c)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.connections.Add(1)
		case http.StateClosed:
			c.connections.Add(-1)
		}
	}
	server.Start()
	return server
}

// settle waits until all requests of the killed process are served: they come before
// those of the next process. Connections are accepted in order, and ours is the last.
func (c *counter) settle(t *testing.T, url string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Head(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	clocktest.Await(t, func() bool { return c.connections.Load() == 0 })
}

// ServeHTTP answers the square of the step. A step that comes after a later one
// was recorded already; one that comes again must come from another process.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	query := r.URL.Query()
	id, process := query.Get("job"), query.Get("process")
	step, _ := strconv.Atoi(query.Get("step"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times[id] == nil {
		c.times[id], c.by[id] = map[int]int{}, map[int]string{}
	}
	if step < c.last[id] {
		c.problems = append(c.problems, fmt.Sprintf("job %s made step %d after step %d", id, step, c.last[id]))
	}
	if c.by[id][step] == process {
		c.problems = append(c.problems, fmt.Sprintf("job %s made step %d twice in one process", id, step))
	}
	c.last[id] = max(c.last[id], step)
	c.times[id][step]++
	c.by[id][step] = process
	fmt.Fprint(w, step*step)
}

func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills, seed := 20, uint64(time.Now().UnixNano())
	if text := os.Getenv(crashKills); text != "" {
		kills, _ = strconv.Atoi(text)
	}
	if text := os.Getenv(crashSeed); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("%d kills, %s=%d", kills, crashSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0)) // times, not secrets
	upstream := newCounter()
	server := upstream.start()
	defer server.Close()
	data := filepath.Join(t.TempDir(), "crash.db")

	acknowledged := map[string]string{} // sources of the jobs, by id
	note := func(line string) {
		if rest, ok := strings.CutPrefix(line, "stored "); ok {
			id, source, _ := strings.Cut(rest, " ")
			acknowledged[id] = source
		}
	}
	for n := 0; n < kills || len(acknowledged) < crashJobs; n++ { // a slow machine needs more runs
		crashRun(t, server.URL, data, note, 1+time.Duration(random.Int64N(int64(150*time.Millisecond))))
		upstream.settle(t, server.URL)
	}
	outcomes := map[string]string{}
	crashRun(t, server.URL, data, func(line string) {
		note(line)
		if rest, ok := strings.CutPrefix(line, "over "); ok {
			id, outcome, _ := strings.Cut(rest, " ")
			outcomes[id] = outcome
		}
	}, 0)
	upstream.check(t, acknowledged, outcomes)
}

// crashRun runs a child, and kills it after the given time, or waits for its end.
func crashRun(t *testing.T, server, data string, each func(line string), kill time.Duration) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashChild+"="+server, crashData+"="+data, fmt.Sprintf("%s=%t", crashLast, kill == 0))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "up" && kill > 0 {
			time.AfterFunc(kill, func() { _ = child.Process.Kill() })
			continue
		}
		each(lines.Text())
	}
	err = child.Wait()
	if kill == 0 && err != nil {
		t.Fatalf("the last child: %v", err)
	}
}

func (c *counter) check(t *testing.T, acknowledged, outcomes map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, problem := range c.problems {
		t.Error(problem)
	}
	repeated, doubtful := 0, 0
	for id, source := range acknowledged {
		outcome, known := outcomes[id]
		switch {
		case !known:
			t.Errorf("job %s was acknowledged and is lost", id)
		case outcome == fmt.Sprintf("complete %d", sumOfSquares(crashSteps)):
			repeated += c.checkComplete(t, id, source)
		case source == "write" && strings.HasPrefix(outcome, "failed") && strings.Contains(outcome, "it is unknown whether upstream.write("):
			doubtful++
		default:
			t.Errorf("job %s of %s ended as %q", id, source, outcome)
		}
	}
	if len(acknowledged) < crashJobs {
		t.Errorf("%d jobs were acknowledged, want %d at least", len(acknowledged), crashJobs)
	}
	t.Logf("%d jobs: %d complete, %d in doubt; %d calls made again because their outcome was lost",
		len(acknowledged), len(acknowledged)-doubtful, doubtful, repeated)
}

// checkComplete compares a complete job with the calls it made, and returns how many of
// them were made more than once.
func (c *counter) checkComplete(t *testing.T, id, source string) (repeated int) {
	t.Helper()
	for step := 1; step <= crashSteps; step++ {
		n := c.times[id][step]
		if n == 0 || n > 1 && source == "write" {
			t.Errorf("job %s is complete and made step %d %d times", id, step, n)
		}
		repeated += max(n-1, 0)
	}
	return repeated
}

func sumOfSquares(n int) (sum int) {
	for i := 1; i <= n; i++ {
		sum += i * i
	}
	return sum
}

// runCrashChild is the child: it submits missing jobs, waits for all, and prints how they
// ended.
func runCrashChild() {
	if err := crashWork(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crash child:", err)
		os.Exit(1)
	}
}

func crashWork(out io.Writer) error {
	ctx := context.Background()
	d, err := db.Open(ctx, "sqlite:"+os.Getenv(crashData), db.Options{})
	if err != nil {
		return err
	}
	runner := &crashRunner{server: os.Getenv(crashChild), process: fmt.Sprint(os.Getpid(), time.Now().UnixNano())}
	q, err := job.Open(ctx, d, runner, job.Options{KeepComplete: time.Hour, KeepFailed: time.Hour, Attempts: 1000})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "up")
	page, err := q.List(ctx, job.Filter{Creator: crashCreator}, 100_000, "")
	if err != nil {
		return err
	}
	var all, open []string
	for _, j := range page.Jobs {
		all = append(all, j.ID)
		if !j.State.Final() {
			open = append(open, j.ID)
		}
		fmt.Fprintln(out, "stored", j.ID, j.Source)
	}
	for os.Getenv(crashLast) != "true" {
		if open, err = crashFill(ctx, out, q, open); err != nil {
			return err
		}
	}
	done, pending, err := q.Poll(ctx, all, time.Minute, true)
	if err != nil || len(pending) > 0 {
		return fmt.Errorf("%d jobs have not ended (%w)", len(pending), err)
	}
	for _, j := range done {
		detail := string(j.Result)
		if j.Error != nil {
			detail = j.Error.Message
		}
		fmt.Fprintln(out, "over", j.ID, j.State, detail)
	}
	if err := q.Close(); err != nil {
		return err
	}
	return d.Close()
}

// crashFill submits jobs until enough are unfinished, waits for one to end, and returns
// the unfinished ones.
func crashFill(ctx context.Context, out io.Writer, q *job.Queue, open []string) ([]string, error) {
	for len(open) < crashJobs {
		source := "repeat"
		if rand.IntN(crashRisky) == 0 { // a choice, not a secret
			source = "write"
		}
		j, err := q.Submit(ctx, job.Spec{Source: source, Creator: crashCreator})
		if err != nil {
			return nil, err
		}
		open = append(open, j.ID)
		fmt.Fprintln(out, "stored", j.ID, source)
	}
	_, pending, err := q.Poll(ctx, open, time.Minute, false)
	return pending, err
}

// crashRunner makes crashSteps calls and adds up the answers.
type crashRunner struct{ server, process string }

func (r *crashRunner) RunJob(ctx context.Context, task job.Task) (outcome job.Outcome, err error) {
	kind := map[string]host.Kind{"repeat": host.Idempotent, "write": host.Write}[task.Source]
	sum := int64(0)
	for step := int64(1); step <= crashSteps; step++ {
		e := host.Effect{Seq: step, Name: "upstream." + task.Source, Kind: kind, Args: []host.Value{step}}
		values, err := task.Handler.Handle(ctx, e, func(ctx context.Context) ([]host.Value, error) { return r.call(ctx, task.ID, step) })
		if err != nil {
			return outcome, err
		}
		square, _ := values[0].(int64)
		sum += square
	}
	outcome.Result, err = json.Marshal(sum)
	return outcome, err
}

func (r *crashRunner) call(ctx context.Context, id string, step int64) ([]host.Value, error) {
	query := url.Values{"job": {id}, "step": {fmt.Sprint(step)}, "process": {r.process}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := httpjsontest.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	square, err := strconv.ParseInt(string(body), 10, 64)
	return []host.Value{square}, err
}
