package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// balancer sends requests to nodes that were ready at its last poll.
type balancer struct {
	nodes []*clusterNode

	mu    sync.Mutex
	ready map[*clusterNode]bool
}

// poll polls /ready of every node until ctx ends.
func (b *balancer) poll(ctx context.Context) {
	for ctx.Err() == nil {
		for _, c := range b.nodes {
			ok := status(ctx, c, "/ready") == http.StatusOK
			b.mu.Lock()
			b.ready[c] = ok
			b.mu.Unlock()
		}
		_ = clock.Real().Sleep(ctx, 20*time.Millisecond) // more often than real balancers
	}
}

// status returns the status of a GET request; zero if there is no response.
func status(ctx context.Context, c *clusterNode, path string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+path, nil)
	if err != nil {
		return 0
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// pick returns a node that was ready at the last poll.
func (b *balancer) pick(ctx context.Context) *clusterNode {
	picked := b.nodes[0]
	clocktest.Poll(ctx, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		var ready []*clusterNode
		for c, ok := range b.ready {
			if ok {
				ready = append(ready, c)
			}
		}
		if len(ready) > 0 {
			picked = ready[rand.IntN(len(ready))]
		}
		return len(ready) > 0
	})
	return picked
}

// awaitReady waits until the balancer has polled a state of a node.
func (b *balancer) awaitReady(t *testing.T, c *clusterNode, ready bool) {
	t.Helper()
	clocktest.Await(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.ready[c] == ready
	}, func() string {
		return fmt.Sprintf("the state of %s, whether it is ready, was never polled as %t", c.name, ready)
	})
}

// TestRollingRestart stops and restarts one node after the other under load. Each node
// first reports that it is not ready, continues to serve, and finishes its requests: a
// client that uses only ready nodes never gets an error.
func TestRollingRestart(t *testing.T) {
	if os.Getenv(nodesSeconds) == "" {
		t.Skip("make nodes runs it: it starts several servers")
	}
	t.Parallel()
	f := startCluster(t, "shutdown_delay = \"6s\"") // longer than a poll takes on a busy machine
	b := &balancer{nodes: f.nodes, ready: map[*clusterNode]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { b.poll(ctx) })
	for _, c := range f.nodes {
		b.awaitReady(t, c, true)
	}
	served := startLoad(ctx, &all, b.pick, func(what string, at *clusterNode, err error) { t.Errorf("%s at %s: %v", what, at.name, err) })
	for _, c := range f.nodes {
		f.restart(t, b, c)
	}
	stop()
	all.Wait()
	t.Logf("%d requests were served while %d nodes were restarted", served.Load(), len(f.nodes))
}

// startLoad starts clients of four kinds, which send requests until ctx ends, each to the node
// that pick returns, and counts them.
func startLoad(ctx context.Context, all *sync.WaitGroup, pick func(context.Context) *clusterNode, failed func(what string, at *clusterNode, err error)) *atomic.Int64 {
	var served atomic.Int64
	load := func(what string, do func(ctx context.Context, at *clusterNode, n int) error) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				at := pick(ctx)
				if err := do(context.WithoutCancel(ctx), at, n); err != nil && ctx.Err() == nil {
					failed(what, at, err)
				}
				served.Add(1)
				_ = clock.Real().Sleep(ctx, 5*time.Millisecond) // between the requests of a client
			}
		})
	}
	load("a quick call", func(_ context.Context, at *clusterNode, n int) error { return evalAt(at, fmt.Sprint("return ", n)) })
	load("a slow call", func(_ context.Context, at *clusterNode, _ int) error { return evalAt(at, "clock.sleep(500) return 1") })
	load("a session", func(ctx context.Context, at *clusterNode, n int) error {
		v := &sessionClient{at: at}
		if err := v.begin(ctx); err != nil {
			return err
		}
		v.at = pick(ctx) // the next request goes wherever the balancer sends it
		return v.eval(ctx, n)
	})
	load("a message", func(ctx context.Context, at *clusterNode, n int) error { return sayAt(ctx, at, n) })
	return &served
}

// restart stops a node with SIGTERM and starts it again.
func (f *testCluster) restart(t *testing.T, b *balancer, c *clusterNode) {
	t.Helper()
	c.Signal(t, syscall.SIGTERM)
	b.awaitReady(t, c, false)
	if got := status(t.Context(), c, "/ready"); got != http.StatusServiceUnavailable {
		t.Errorf("%s: /ready is %d after SIGTERM", c.name, got)
	}
	if err := evalAt(c, "return 1"); err != nil {
		t.Errorf("%s does not serve during the shutdown delay: %v", c.name, err)
	}
	output, err := c.Wait()
	if err != nil {
		t.Errorf("%s ended with %v:\n%s", c.name, err, output)
	}
	if strings.Contains(output, "ERROR") { // a stop is not an error
		t.Errorf("%s logged an error:\n%s", c.name, output)
	}
	f.start(t, c)
	b.awaitReady(t, c, true)
}

// evalAt evaluates code on a node.
func evalAt(c *clusterNode, code string) error {
	var answer struct{ Result json.RawMessage }
	return c.Call("lua_eval", map[string]any{"code": code}, &answer)
}

// sayAt sends a chat message to a node and checks the answer. Each node has a user of its own:
// a message that waits behind another of its user is answered by the next node, and its sender
// is told so.
func sayAt(ctx context.Context, c *clusterNode, n int) error {
	body, err := json.Marshal(map[string]string{"client_id": "rolling", "user_id": "user of " + c.name, "message": messageText("ann", n)})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL()+"/api/v1/chat", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), messageText("ann", n))) {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}
