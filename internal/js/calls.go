package js

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/fault"
)

// calls are the asynchronous calls of one run: each on a goroutine of its own, as many at
// a time as allowed, the rest in line. Only the script's goroutine uses it.
type calls struct {
	host     Host
	limits   Limits
	made     int             // all calls, synchronous ones too
	waiting  []request       // not started yet
	inflight map[int]request // started, by id
	bytes    int64           // of arguments that waiting and started calls hold
	answers  chan answer     // has room for all in flight: senders never wait
	group    *sync.WaitGroup // of the engine, which waits for stragglers
}

type request struct {
	id   int
	name string
	args json.RawMessage
}

type answer struct {
	id   int
	text string
}

func newCalls(host Host, limits Limits, group *sync.WaitGroup) *calls {
	return &calls{
		host: host, limits: limits, group: group,
		inflight: map[int]request{},
		answers:  make(chan answer, limits.Parallel),
	}
}

// count admits one more call, or says why not.
func (c *calls) count() error {
	if c.made >= c.limits.Calls {
		return fault.New(fault.Limit, "the script made %d calls, which is all it may", c.made).
			WithHint("do more in one call, or raise the limit on calls")
	}
	c.made++
	return nil
}

// start begins a call, or puts it in line.
func (c *calls) start(ctx context.Context, q request) error {
	if err := c.count(); err != nil {
		return err
	}
	if !json.Valid(q.args) {
		return errTooDeep
	}
	if c.bytes+int64(len(q.args)) > c.limits.Memory {
		return fault.New(fault.Limit, "the arguments of calls in flight are more than %d bytes", c.limits.Memory).
			WithHint("await some calls before starting more")
	}
	c.bytes += int64(len(q.args))
	if len(c.inflight) >= c.limits.Parallel {
		c.waiting = append(c.waiting, q)
		return nil
	}
	c.launch(ctx, q)
	return nil
}

func (c *calls) launch(ctx context.Context, q request) {
	c.inflight[q.id] = q
	c.group.Go(func() {
		result, err := guarded(func() (json.RawMessage, error) { return c.host.Call(ctx, q.name, q.args) })
		c.answers <- answer{q.id, encodeAnswer(result, err)}
	})
}

// idle tells that no answer will come.
func (c *calls) idle() bool { return len(c.inflight) == 0 }

// next waits for an answer.
func (c *calls) next(ctx context.Context) (answer, error) {
	select {
	case a := <-c.answers:
		c.bytes -= int64(len(c.inflight[a.id].args))
		delete(c.inflight, a.id)
		if len(c.waiting) > 0 {
			c.launch(ctx, c.waiting[0])
			c.waiting = c.waiting[1:]
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// abandon waits until the calls in flight have seen that ctx ended, for the grace at most:
// a host that does not listen cannot hold up the run.
func (c *calls) abandon() {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for len(c.inflight) > 0 {
		select {
		case a := <-c.answers:
			delete(c.inflight, a.id)
		case <-timer.C:
			return
		}
	}
}

// names lists what is in flight, for error messages.
func (c *calls) names() string {
	var names []string
	for _, q := range c.inflight {
		names = append(names, q.name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}

// sync makes a synchronous call. It runs beside the script's goroutine, so that a host
// that hangs cannot hold up the run.
func (c *calls) sync(ctx context.Context, name string, args json.RawMessage) string {
	if err := c.count(); err != nil {
		return encodeAnswer(nil, err)
	}
	if !json.Valid(args) {
		return encodeAnswer(nil, errTooDeep)
	}
	done := make(chan string, 1)
	c.group.Go(func() {
		done <- encodeAnswer(guarded(func() (json.RawMessage, error) { return c.host.CallSync(ctx, name, args) }))
	})
	select {
	case text := <-done:
		return text
	case <-ctx.Done():
		return encodeAnswer(nil, context.Cause(ctx))
	}
}

// guarded turns a panic of the host into an error: one broken function must not take the
// process with it.
func guarded(call func() (json.RawMessage, error)) (_ json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "the function panicked: %v", p)
		}
	}()
	return call()
}
