package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// call runs one of the server's tools.
func (c *connection) call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name := call.Ref.Name
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := append(make([]byte, 0, len(name)+len(args)+32), `{"name":`...)
	params = append(rawjson.AppendText(params, name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	result, err := c.callTool(ctx, name, args, request{
		method: wire.MethodToolsCall, params: params, meta: call.Meta, caller: call.Caller,
	})
	return tool.Result{Raw: result}, err
}

// callTool makes a tools/call, counts it, and holds it to what the spec permits.
func (c *connection) callTool(ctx context.Context, name string, args json.RawMessage, r request) (json.RawMessage, error) {
	known, err := c.permit(name)
	if err != nil {
		return nil, err
	}
	r.label = known.caption
	for _, p := range known.params {
		if value, ok := p.Value(args); ok {
			r.headers = append(r.headers, Header{p.Header, value})
		}
	}
	if r.caller == nil {
		r.caller = &tool.Caller{} // nobody to talk to, but progress still counts
	}
	c.began(name)
	result, err := c.request(ctx, &r, name, known.hints.Repeatable())
	c.ended(err != nil || r.failed)
	return result, err
}

// permission is what calls of a tool need to know of it.
type permission struct {
	hints   tool.Hints
	params  []wire.HeaderParam
	caption *spanLabel // nil for one that is not listed
}

// permit tells what is known of a tool, or that it does not exist for us.
func (c *connection) permit(name string) (permission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.find(name)
	if !c.spec.permits(name) || c.spec.ReadOnly && !info.Hints.ReadOnly {
		return permission{}, fault.New(fault.Denied, "tool %s.%s is not allowed by the configuration", c.spec.Name, name).
			WithHint("see allowed_tools, disabled_tools and read_only of upstream %s", c.spec.Name)
	}
	p := permission{hints: info.Hints, params: c.tools.headers[name], caption: c.tools.spanLabels[name]}
	if p.caption == nil && info.Name != "" {
		if c.tools.spanLabels == nil {
			c.tools.spanLabels = map[string]*spanLabel{}
		}
		p.caption = c.spanLabel(wire.MethodToolsCall, info.Name)
		c.tools.spanLabels[info.Name] = p.caption
	}
	return p, nil
}

// find looks a tool up; one that is not listed claims nothing. c.mu is held.
func (c *connection) find(name string) tool.Info {
	at, found := slices.BinarySearchFunc(c.tools.tools, name, func(info tool.Info, name string) int {
		return strings.Compare(info.Name, name)
	})
	if !found {
		return tool.Info{}
	}
	return c.tools.tools[at]
}

// began and ended keep the statistics of calls.
func (c *connection) began(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls++
	c.stats.InFlight++
	c.stats.LastTool, c.stats.LastCall = name, time.Now()
}

func (c *connection) ended(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.InFlight--
	if failed {
		c.stats.Errors++
	}
}

// request reaches the server, however long its spec lets a caller wait, and asks.
// A request that cannot have been seen is made again as long as that wait lasts;
// one that may have been seen only when repeatable. what names it in errors.
func (c *connection) request(ctx context.Context, r *request, what string, repeatable bool) (result json.RawMessage, err error) {
	r.timeout, r.maxTime = c.times()
	r.about = what
	ctx, span := c.startSpan(ctx, r)
	defer func() { r.endSpan(span, err) }()
	var since time.Time
	for try := 1; ; try++ {
		s, err := c.waitForSession(ctx, &since)
		if err != nil {
			return nil, err
		}
		result, err = s.perform(ctx, r)
		c.use()
		if err == nil {
			r.failed = r.method == wire.MethodToolsCall && rawjson.GetBool(result, "isError")
			return result, nil
		}
		verdict := c.handleFailure(ctx, s, err)
		if since.IsZero() {
			since = time.Now()
		}
		late := try > 1 && time.Since(since) > c.currentSpec().wait()
		if late || !verdict.allows(repeatable) {
			return nil, c.callError(ctx, err, what)
		}
		if verdict == retryIfRepeatable && try > 1 { // perhaps the request itself is what it dies of
			_ = clock.Real().Sleep(ctx, backoff.Policy{First: 25 * time.Millisecond, Max: 500 * time.Millisecond}.Delay(try-1))
		}
	}
}

// times are how long a request may take without a sign of progress, and at all.
func (c *connection) times() (silent, most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.timeout(), c.spec.maxTime()
}

// use keeps a lazy server awake.
func (c *connection) use() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastUsed = time.Now()
}

// waitForSession gives the session that serves, waking the server and waiting for it as
// long as its spec says from since on, which is set with the first wait; a
// program that is starting is given the time to.
func (c *connection) waitForSession(ctx context.Context, since *time.Time) (*session, error) {
	var timer *time.Timer
	late := false
	for {
		c.mu.Lock()
		c.lastUsed = time.Now()
		if s := c.session; s != nil {
			c.mu.Unlock()
			return s, nil
		}
		state, told, spec, starting := c.state, c.stateChanged, c.spec, c.starting()
		c.mu.Unlock()
		if state == StateNeedsAuth || late && !starting {
			return nil, c.unreachableError(*since)
		}
		if timer == nil {
			if since.IsZero() {
				*since = time.Now()
			}
			timer = time.NewTimer(spec.wait() - time.Since(*since))
			defer timer.Stop()
			signal(c.wake)
		} else if state == StateAsleep {
			signal(c.wake)
		}
		select {
		case <-told:
		case <-timer.C:
			late = true
		case <-c.life.ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, errRemoved, "reach %s", spec.Name)
		case <-ctx.Done():
			return nil, c.callError(ctx, context.Cause(ctx), "")
		}
	}
}

// starting tells that a program which came up the last time is on its way again,
// which is worth waiting for: it may need longer than callers wait for a server
// that is away. c.mu is held.
func (c *connection) starting() bool {
	return c.lastStartOK && (c.spec.Command != "" || c.spec.lazy())
}

// retryPolicy says whether a request may be made once more.
type retryPolicy uint8

const (
	retryNever        retryPolicy = iota // it has an answer, or nobody waits for one
	retryIfRepeatable                    // the server may have acted on it
	retryAlways                          // the server cannot have seen it
)

// allows tells whether a request that may be repeated, or may not, is made again.
func (a retryPolicy) allows(repeatable bool) bool {
	return a == retryAlways || a == retryIfRepeatable && repeatable
}

// handleFailure decides that for a request that ended in err, and starts healing what
// err says is broken.
func (c *connection) handleFailure(ctx context.Context, s *session, err error) retryPolicy {
	var answered *wire.Error
	var status *statusError
	switch {
	case errors.As(err, &answered), errors.Is(err, wire.ErrTooLarge):
		return retryNever
	case errors.Is(err, errNoProgress), errors.Is(err, errMaxTime):
		signal(c.checkNow)
		return retryNever
	case ctx.Err() != nil:
		return retryNever
	case lacksScope(err):
		return retryNever
	case errors.As(err, &status) && status.auth():
		c.failSession(s, err)
		return retryNever
	case errors.As(err, &status) && status.Code < 500:
		return retryNever
	case errors.Is(err, ErrNotSent):
		c.failSession(s, err)
		return retryAlways
	}
	signal(c.checkNow)
	return retryIfRepeatable
}
