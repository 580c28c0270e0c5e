package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// counter is an upstream that records every call. Its tool add is declared idempotent: it
// stores one entry per job and step. Its tool push adds an entry each time.
type counter struct {
	mu       sync.Mutex
	calls    map[string]map[int]int // by job and step
	last     map[string]int         // the highest step of each job
	by       map[string]string      // the server process that called last, by job and step
	twice    []madeTwice
	problems []string
}

// madeTwice is a step that one server process called twice.
type madeTwice struct {
	job  string
	step int
}

func (m madeTwice) String() string {
	return fmt.Sprintf("job %s made step %d twice in one process", m.job, m.step)
}

// bootHeader tells the counter which server process calls.
const bootHeader = "X-Boot"

type bootKey struct{}

// counterConfig configures the counter at an address as an upstream. Each process says who it
// is by the variable BOOT.
func counterConfig(url string) string {
	return fmt.Sprintf("[upstreams.counter]\nurl = %q\nwait = \"1m\"\nheaders = { %q = \"${BOOT}\" }\n", url, bootHeader)
}

// keepJobs lets jobs run for long and keeps them when they have ended.
var keepJobs = []string{"LUANETTE_JOBS_KEEP_COMPLETE=24h", "LUANETTE_JOBS_KEEP_FAILED=24h", "LUANETTE_JOBS_TIMEOUT=10m"}

// serveCounter starts a counter that outlives the servers which call it.
func serveCounter(t *testing.T) (*counter, string) {
	t.Helper()
	return serveCounterWith(t, func(c *counter) tool.Source { return c })
}

// serveCounterWith starts a counter whose calls go through a source of the test.
func serveCounterWith(t *testing.T, through func(*counter) tool.Source) (*counter, string) {
	t.Helper()
	c := &counter{calls: map[string]map[int]int{}, last: map[string]int{}, by: map[string]string{}}
	h := hub.New(hub.Options{Name: "counter", Version: "1", Tools: through(c)})
	handler := h.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bootKey{}, r.Header.Get(bootHeader))))
	}))
	t.Cleanup(func() {
		_ = h.Close(context.Background())
		server.CloseClientConnections()
		server.Close()
	})
	return c, server.URL + "/mcp"
}

// Tools are add and push.
func (c *counter) Tools(context.Context) ([]tool.Info, error) {
	define := func(name, annotations string) tool.Info {
		schema := `{"type":"object","properties":{"job":{"type":"string"},"step":{"type":"integer"}},"required":["job","step"]}`
		raw := fmt.Sprintf(`{"name":%q,"description":"Counts.","inputSchema":%s,"annotations":%s}`, name, schema, annotations)
		return tool.Info{Ref: tool.Ref{Name: name}, Description: "Counts.", Input: json.RawMessage(schema), Raw: json.RawMessage(raw)}
	}
	return []tool.Info{define("add", `{"idempotentHint":true}`), define("push", `{}`)}, nil
}

// Call records the call. It notes a step that follows a later one, and a step that one
// process calls twice.
func (c *counter) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in struct {
		Job  string
		Step int
	}
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, fault.Wrap(fault.InvalidParams, err, "read arguments")
	}
	boot, _ := ctx.Value(bootKey{}).(string)
	key := fmt.Sprint(in.Job, " ", in.Step)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case boot == "":
		c.problems = append(c.problems, "a call without the header "+bootHeader)
	case in.Step < c.last[in.Job]:
		c.problems = append(c.problems, fmt.Sprintf("job %s made step %d after step %d", in.Job, in.Step, c.last[in.Job]))
	case c.by[key] == boot:
		c.twice = append(c.twice, madeTwice{in.Job, in.Step})
	}
	if c.calls[in.Job] == nil {
		c.calls[in.Job] = map[int]int{}
	}
	c.calls[in.Job][in.Step]++
	c.last[in.Job] = max(c.last[in.Job], in.Step)
	c.by[key] = boot
	return tool.Output("counted", map[string]int{"square": in.Step * in.Step})
}

// callsOf returns how often a job called each of its steps.
func (c *counter) callsOf(job string) map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[job]
}

// hasCalled reports whether a job made a call.
func (c *counter) hasCalled(job string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[job] > 0
}
