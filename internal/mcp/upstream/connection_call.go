package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// callTool checks that the spec allows the tool, counts the call and makes it.
// params are those of the request.
func (c *connection) callTool(ctx context.Context, call tool.Call, params json.RawMessage, strict bool) (tool.Result, error) {
	r := request{method: wire.MethodToolsCall, params: params, meta: call.Meta, caller: call.Caller, about: call.Ref.Name}
	counted := !tool.IsForPlan(ctx)
	repeatable, err := c.beginCall(&r, &call, counted)
	if err != nil {
		return tool.Result{}, err
	}
	if r.caller == nil {
		r.caller = &noCaller
	}
	var answer json.RawMessage
	if strict && r.task {
		err = wire.NeedsTasks()
	} else {
		answer, err = c.request(ctx, &r, repeatable)
	}
	if err != nil && !strict && needsTasks(err) {
		r.task = true
		answer, err = c.request(ctx, &r, repeatable)
	}
	result := tool.Result{Raw: answer}
	if r.task && err == nil {
		result, err = c.finishTaskCall(ctx, call, answer)
	}
	c.endCall(err != nil || r.failed, counted)
	return result, err
}

// noCaller receives nothing, but with a caller progress extends the timeout.
var noCaller tool.Caller

// beginCall adds to the request what is known of its tool and counts the call. It
// reports whether the tool may be called again if the outcome is unknown, or that
// the spec does not allow the tool.
func (c *connection) beginCall(r *request, call *tool.Call, counted bool) (repeatable bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := r.about
	info := c.find(name)
	if !c.spec.permits(name) || c.spec.ReadOnly && !info.Hints.ReadOnly {
		return false, fault.New(fault.Denied, "tool %s.%s is not allowed by the configuration", c.spec.Name, name).
			WithHint("see allowed_tools, disabled_tools and read_only of upstream %s", c.spec.Name)
	}
	for _, p := range c.tools.headers[name] {
		if value, ok := p.Value(call.Args); ok {
			r.headers = append(r.headers, Header{p.Header, value})
		}
	}
	if info.Name != "" {
		r.label = c.toolLabel(info.Name)
	}
	support := c.tools.tasks[name]
	if call.Task != nil {
		r.task, r.taskTTL = support != taskNever || c.session.hasTasksExtension(), call.Task.TTL
	} else {
		r.task = support == taskRequired
	}
	c.stats.InFlight++
	if counted {
		c.stats.Calls++
		c.stats.LastTool, c.stats.LastCall = name, time.Now()
	}
	return info.Hints.Repeatable(), nil
}

// toolLabel is the span label of a listed tool; c.mu is held.
func (c *connection) toolLabel(name string) *spanLabel {
	label := c.tools.spanLabels[name]
	if label == nil {
		if c.tools.spanLabels == nil {
			c.tools.spanLabels = map[string]*spanLabel{}
		}
		label = newSpanLabel(c.name, wire.MethodToolsCall, name)
		label.listed = true
		c.tools.spanLabels[name] = label
	}
	return label
}

func (c *connection) endCall(failed, counted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.InFlight--
	if failed && counted {
		c.stats.Errors++
	}
}

// find looks a tool up. A tool that is not listed has no hints. c.mu is held.
func (c *connection) find(name string) tool.Info {
	info, _ := c.tools.find(name)
	return info
}

// request waits for a session, as long as the spec allows, and sends the request.
// A request that the server cannot have seen is repeated within that time, one
// whose outcome is unknown only if it is repeatable.
func (c *connection) request(ctx context.Context, r *request, repeatable bool) (result json.RawMessage, err error) {
	r.timeout, r.maxTime = c.timeouts(r.method)
	c.clients.add(ctx, r.caller)
	ctx, span := c.startSpan(ctx, r)
	defer func() { r.endSpan(span, err) }()
	var since time.Time // when the wait for a session began
	for try := 1; ; try++ {
		s, err := c.waitFor(ctx, r.caller, &since)
		if err != nil {
			return nil, unsent(err, try)
		}
		result, err = s.request(ctx, r)
		c.setLastUsed()
		if err == nil {
			return result, nil
		}
		policy := c.handleFailure(ctx, s, err)
		if since.IsZero() {
			since = time.Now()
		}
		late := try > 1 && time.Since(since) > c.currentSpec().wait()
		if late || !policy.allows(repeatable) {
			return nil, c.callError(ctx, err, r.about)
		}
		if policy == retryIfRepeatable && try > 1 { // perhaps this request makes the server crash
			_ = clock.Real().Sleep(ctx, backoff.Policy{First: 25 * time.Millisecond, Max: 500 * time.Millisecond}.Delay(try-1))
		}
	}
}

// unsent marks an error before the first try: the server has not seen the request.
func unsent(err error, try int) error {
	if try == 1 {
		return tool.Unsent{Err: err}
	}
	return err
}

// timeouts are the limits of a request: without progress, and in total.
func (c *connection) timeouts(method string) (silent, total time.Duration) {
	if method == wire.MethodTasksResult { // the server answers when the task has ended
		return maxTaskTTL, maxTaskTTL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.timeout(), c.spec.maxTime()
}

// setLastUsed keeps a lazy server running.
func (c *connection) setLastUsed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastUsed = time.Now()
}

// waitForSession returns the current session. If there is none, it wakes the
// connection and waits for it as long as the spec says, counted from since, which
// the first wait sets. A server that is starting is given the time that it needs: only
// ctx ends the wait for it.
func (c *connection) waitForSession(ctx context.Context, since *time.Time) (*session, error) {
	return c.waitFor(ctx, nil, since)
}

// waitFor is waitForSession for a caller, who is told what the call waits for.
func (c *connection) waitFor(ctx context.Context, caller *tool.Caller, since *time.Time) (*session, error) {
	if s := c.currentSession(); s != nil {
		return s, nil
	}
	defer c.addWaiter()()
	if since.IsZero() {
		*since = time.Now()
	}
	signal(c.wake)
	report := newWaitReport(caller)
	defer report.stop()
	timer := time.NewTimer(c.currentSpec().wait() - time.Since(*since))
	defer timer.Stop()
	for late := false; ; {
		c.mu.Lock()
		s, stateChanged, hopeless := c.session, c.stateChanged, c.isHopeless(late)
		if c.state == StateAsleep {
			signal(c.wake)
		}
		c.lastUsed = time.Now()
		c.mu.Unlock()
		switch {
		case s != nil:
			return s, nil
		case hopeless:
			return nil, c.unreachableError(*since)
		}
		select {
		case <-stateChanged:
		case <-timer.C:
			late = true
		case <-report.ticker.C:
			report.send(c.waitingText())
		case <-c.life.ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, errRemoved, "connect to %s", c.name)
		case <-ctx.Done():
			return nil, c.gaveUpError(ctx, *since)
		}
	}
}

// currentSession is the session, or nil.
func (c *connection) currentSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastUsed = time.Now()
	return c.session
}

// isHopeless reports whether a call should wait no longer; late says that its time
// to wait is over. c.mu is held.
func (c *connection) isHopeless(late bool) bool {
	switch c.state {
	case StateNeedsAuth:
		return true
	case StateFailed:
		return late || !c.canWake()
	}
	return late && !c.isStarting()
}

// retryPolicy says whether a failed request may be sent again.
type retryPolicy uint8

const (
	retryNever        retryPolicy = iota // it was answered, or the caller no longer waits
	retryIfRepeatable                    // the server may have acted on it
	retryAlways                          // the server cannot have seen it
)

func (p retryPolicy) allows(repeatable bool) bool {
	return p == retryAlways || p == retryIfRepeatable && repeatable
}

// handleFailure decides whether the request that ended in err may be repeated. If
// err means that the session may be broken, it has the session checked or replaced.
func (c *connection) handleFailure(ctx context.Context, s *session, err error) retryPolicy {
	var answered *wire.Error
	var status *statusError
	var ofAPI *apiError
	switch {
	case errors.As(err, &answered), errors.As(err, &ofAPI), errors.Is(err, wire.ErrTooLarge):
		return retryNever
	case errors.Is(err, errNoProgress), errors.Is(err, errMaxTime):
		signal(c.checkNow)
		return retryNever
	case ctx.Err() != nil, lacksScope(err):
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
