package host

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
)

// ToolCounter counts the tools a run calls and refuses calls after Limit of them; 0
// means no limit. It is safe for concurrent use.
type ToolCounter struct {
	Limit int64
	made  atomic.Int64

	mu   sync.Mutex
	open map[int64]string // calls that have not ended, or that the end of the run cut off, by number
}

// Open names the tools of calls that had not ended when the run did, in the order of the
// calls, each once.
func (c *ToolCounter) Open() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(c.open)) {
		if name := c.open[number]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// begin notes that a call has begun; the returned function, that it has ended.
func (c *ToolCounter) begin(number int64, name string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[int64]string{}
	}
	c.open[number] = name
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, number)
	}
}

// Count returns how many calls were allowed.
func (c *ToolCounter) Count() int64 {
	if made := c.made.Load(); c.Limit == 0 || made <= c.Limit {
		return made
	}
	return c.Limit
}

// Wrap counts the tool calls that are passed to inner.
func (c *ToolCounter) Wrap(inner Handler) Handler { return toolCountHandler{inner, c} }

type toolCountHandler struct {
	inner Handler
	count *ToolCounter
}

// Rehearsing implements the check of the function Rehearsing.
func (d toolCountHandler) Rehearsing() bool { return Rehearsing(d.inner) }

func (d toolCountHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Name == callEffect {
		made := d.count.made.Add(1)
		if d.count.Limit > 0 && made > d.count.Limit {
			return nil, fault.New(fault.Limit, "%s: the run's limit of %d tool calls is used up", title(e.Name, e.Args), d.count.Limit).
				WithHint("use tools that do more per call, or split the work over several runs").
				WithDetails(map[string]int64{"calls_made": d.count.Limit, "limit": d.count.Limit})
		}
		end := d.count.begin(made, title(e.Name, e.Args))
		values, err := d.inner.Handle(ctx, e, live)
		if ctx.Err() == nil {
			end()
		}
		return values, err
	}
	return d.inner.Handle(ctx, e, live)
}
