package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Call implements tool.Source.
func (m *Manager) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := append(make([]byte, 0, len(call.Ref.Name)+len(args)+32), `{"name":`...)
	params = append(rawjson.AppendText(params, call.Ref.Name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	return m.callTool(ctx, call, params, false)
}

// callTool calls a tool over the connection of its namespace, and over the next
// one if the first is replaced before it has sent the call. With strict, a call that must
// be a task is refused unless the caller takes one.
func (m *Manager) callTool(ctx context.Context, call tool.Call, params json.RawMessage, strict bool) (tool.Result, error) {
	for again := false; ; again = true {
		var result tool.Result
		c, err := m.connectionFor(ctx, call.Ref.Space)
		if err == nil {
			result, err = c.callTool(ctx, call, params, strict)
		} else if again {
			err = removedDuring(call.Ref.Space, err)
		}
		if !errors.Is(err, errRemoved) {
			return result, err
		}
	}
}

// with is callTool for other operations.
func (m *Manager) with(ctx context.Context, name string, do func(*connection) error) error {
	for again := false; ; again = true {
		c, err := m.connectionFor(ctx, name)
		if err == nil {
			err = do(c)
		} else if again {
			err = removedDuring(name, err)
		}
		if !errors.Is(err, errRemoved) {
			return err
		}
	}
}

// removedDuring is the error of a request that had no effect, whose upstream is not there
// any more.
func removedDuring(name string, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return fault.New(fault.Unavailable, "call %s: %v during the call, which had no effect", name, errRemoved).
		WithHint("add the upstream again to repeat it")
}

// callTool checks that the spec allows the tool, counts the call and makes it.
// params are those of the request.
func (c *connection) callTool(ctx context.Context, call tool.Call, params json.RawMessage, strict bool) (tool.Result, error) {
	r := outcall{method: wire.MethodToolsCall, params: params, meta: call.Meta, caller: call.Caller, about: call.Ref.Name}
	repeatable, err := c.prepare(&r, &call)
	if err != nil {
		return tool.Result{}, err
	}
	counted := !tool.IsForPlan(ctx)
	c.stats.begin(r.about, counted)
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
	c.stats.end(err != nil || r.failed, counted)
	return result, err
}

// noCaller receives nothing, but with a caller progress extends the timeout.
var noCaller tool.Caller

// prepare adds to the request what is known of its tool. It reports whether the tool may be
// called again if the outcome is unknown, or that the spec does not allow the tool.
func (c *connection) prepare(r *outcall, call *tool.Call) (repeatable bool, err error) {
	info, support := c.known.prepare(r, call.Args)
	if !c.spec.Load().allows(r.about, info.Hints) {
		return false, fault.New(fault.Denied, "tool %s.%s is not allowed by the configuration", c.name, r.about).
			WithHint("see allowed_tools, disabled_tools and read_only of upstream %s", c.name)
	}
	if call.Task != nil {
		r.task, r.taskTTL = support != taskNever || c.phase.session.Load().hasTasksExtension(), call.Task.TTL
	} else {
		r.task = support == taskRequired
	}
	if r.caller == nil {
		r.caller = &noCaller
	}
	return info.Hints.Repeatable(), nil
}

// request waits for a session, as long as the spec allows, and sends the request.
// A request that the server cannot have seen is repeated within that time, one
// whose outcome is unknown only if it is repeatable.
func (c *connection) request(ctx context.Context, r *outcall, repeatable bool) (result json.RawMessage, err error) {
	r.timeout, r.maxTime = c.timeouts(r.method)
	c.clients.add(ctx, r.caller)
	ctx, span := c.startSpan(ctx, r)
	defer func() { r.endSpan(span, err) }()
	var since time.Time // when the wait for a session began
	seen := false       // the server may have seen the request
	for try := 1; ; try++ {
		s, err := c.waitForSession(ctx, r.caller, &since)
		if err != nil {
			return nil, unsent(err, seen)
		}
		result, err = s.request(ctx, r)
		c.phase.use()
		if err == nil {
			return result, nil
		}
		policy := c.handleFailure(ctx, s, err)
		if since.IsZero() {
			since = time.Now()
		}
		seen = seen || policy != retryAlways
		late := try > 1 && time.Since(since) > c.spec.Load().wait()
		if late || !policy.allows(repeatable) {
			return nil, unsent(c.callError(ctx, err, r.about), seen)
		}
		if policy == retryIfRepeatable && try > 1 { // perhaps this request makes the server crash
			_ = clock.Real().Sleep(ctx, backoff.Policy{First: 25 * time.Millisecond, Max: 500 * time.Millisecond}.Delay(try-1))
		}
	}
}

// unsent marks the error of a request that the server has not seen.
func unsent(err error, seen bool) error {
	if seen {
		return err
	}
	return tool.Unsent{Err: err}
}

// timeouts are the limits of a request: without progress, and in total.
func (c *connection) timeouts(method string) (silent, total time.Duration) {
	if method == wire.MethodTasksResult { // the server answers when the task has ended
		return maxTaskTTL, maxTaskTTL
	}
	spec := c.spec.Load()
	return spec.timeout(), spec.maxTime()
}

// waitForSession returns the current session. If there is none, it wakes the
// connection and waits for it as long as the spec says, counted from since, which
// the first wait sets. A server that is starting is given the time that it needs: only
// ctx ends the wait for it. The caller, if there is one, is told what the call waits for.
func (c *connection) waitForSession(ctx context.Context, caller *tool.Caller, since *time.Time) (*session, error) {
	if s := c.phase.session.Load(); s != nil {
		c.phase.use()
		return s, nil
	}
	defer c.phase.addWaiter()()
	if since.IsZero() {
		*since = time.Now()
	}
	signal(c.phase.wake)
	report := newWaitReport(caller)
	defer report.stop()
	timer := time.NewTimer(c.spec.Load().wait() - time.Since(*since))
	defer timer.Stop()
	for late := false; ; {
		s, changed, hopeless := c.phase.look(late)
		switch {
		case s != nil:
			return s, nil
		case hopeless:
			return nil, c.unreachableError(*since)
		}
		select {
		case <-changed:
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
	case errors.As(err, &status) && status.auth() && c.secretsChanged():
		c.failSession(s, errRenewed)
		return retryAlways
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

// maxRounds is how often a modern server may ask for input within one call.
const maxRounds = 16

// request sends a request within its timeout and returns the result. It speaks
// the legacy protocol to its callers: it translates methods that a modern server
// does not have, and when a modern server asks for input, it asks the caller and
// sends the request again.
func (s *session) request(ctx context.Context, r *outcall) (result json.RawMessage, err error) {
	if result, done, err := s.translate(ctx, r); done {
		return result, err
	}
	if ctx.Err() != nil {
		return nil, notSent(context.Cause(ctx))
	}
	began := time.Now()
	ctx, timeout := startCallTimeout(ctx, r.timeout, max(r.maxTime, r.timeout), s.traits.KeepsContext)
	defer func() {
		timeout.stop(err != nil)
		s.noteOutcome(ctx, r, began, result, err)
	}()
	params := r.params
	if r.task {
		params = s.taskParams(r)
	}
	for range maxRounds {
		result, err := s.exchange(ctx, timeout, r, params)
		if err != nil {
			return nil, err
		}
		if rawjson.Lacks(result, "resultType") && !r.handshake { // as legacy results do
			return wire.StripProtocol(result), nil
		}
		switch kind, _ := rawjson.GetText(result, "resultType"); {
		case kind == wire.ResultInputRequired:
			if params, err = s.provideInput(ctx, timeout, r, result); err != nil {
				return nil, err
			}
		case kind == wire.ResultTask && r.task:
			return result, nil
		case kind == wire.ResultTask:
			return nil, errors.New("server answered with a task, although none was requested")
		case r.handshake:
			return result, nil
		default:
			return wire.ToLegacy(result), nil
		}
	}
	return nil, errors.New("server keeps asking for more input")
}

// translate answers legacy requests that modern servers do not have.
func (s *session) translate(ctx context.Context, r *outcall) (result json.RawMessage, done bool, err error) {
	if r.handshake || s.era != wire.Modern {
		return nil, false, nil
	}
	switch r.method {
	case wire.MethodPing:
		err = s.checkHealth(ctx, r.timeout)
	case wire.MethodSetLevel:
		level, _ := rawjson.GetText(r.params, "level")
		s.logLevelSet.Store(&level)
	case wire.MethodSubscribe, wire.MethodUnsubscribe:
		uri, _ := rawjson.GetText(r.params, "uri")
		s.setResourceSubscription(uri, r.method == wire.MethodSubscribe)
	default:
		return nil, false, nil
	}
	return json.RawMessage(`{}`), true, err
}

// exchange sends one message and waits for its response.
func (s *session) exchange(ctx context.Context, timeout *callTimeout, r *outcall, params json.RawMessage) (json.RawMessage, error) {
	id := wire.IntID(s.ids.Add(1))
	r.sentOver, r.id = s, id
	p := newInflight(r, timeout)
	if !s.begin(id, p) {
		return nil, notSent(errRenewed)
	}
	defer func() {
		s.end(id)
		p.finish()
	}()

	var answer wire.Message
	var err error
	if s.intercept == nil {
		answer, err = s.transport.Call(ctx, s.outgoing(r, id, params))
	} else {
		answer, err = s.intercept.call(ctx, s, s.outgoing(r, id, params))
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrNotSent) && !r.handshake {
			s.cancelRequest(id)
		}
		return nil, err
	}
	s.lastReceived.Store(time.Now().UnixNano())
	if r.caller != nil {
		s.answeredCaller.Store(true)
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	if !rawjson.IsObject(answer.Result) {
		return nil, errors.New("result is not an object: " + excerpt(answer.Result))
	}
	return answer.Result, nil
}

// begin adds a pending call, unless the session takes no more.
func (s *session) begin(id wire.ID, p *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired && p.caller != nil {
		return false
	}
	s.pending[id] = p
	return true
}

// end removes a call.
func (s *session) end(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
	if s.renewing && s.calls() == 0 {
		signal(s.idle)
	}
}

// failPending ends every pending call, because the transport has ended.
func (s *session) failPending(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		p.timeout.cancel(reason)
	}
}

// cancelRequest notifies the server that the response is no longer needed, unless
// closing the HTTP request did so already.
func (s *session) cancelRequest(id wire.ID) {
	if s.traits.CancelsOnDisconnect != nil && s.traits.CancelsOnDisconnect() {
		return
	}
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":"the caller gave up"}`)
	s.life.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_ = s.transport.Send(ctx, wire.Notification(wire.NoteCancelled, params)) // if it is lost, the server only works in vain
	})
}

// inflight is a request that awaits its response. The server's progress
// notifications, log messages and questions reach the caller through it, in order
// and before the response does.
type inflight struct {
	caller  *tool.Caller // may be nil
	timeout *callTimeout
	task    string // the task whose result it waits for, or empty

	mu        sync.Mutex
	progress  float64 // the last one reported
	finished  bool
	questions []context.CancelCauseFunc
	queue     chan func()   // notifications for the caller; created by the first
	delivered chan struct{} // closed when the queue is closed and empty
}

func newInflight(r *outcall, timeout *callTimeout) *inflight {
	p := &inflight{caller: r.caller, timeout: timeout, progress: -1}
	if r.method == wire.MethodTasksResult {
		p.task = r.about
	}
	return p
}

// notificationQueue is how many notifications may wait for the caller. Further
// ones are dropped, because a slow caller must not block the server's stream.
const notificationQueue = 256

// handleProgress passes a progress notification on if the progress increases.
func (p *inflight) handleProgress(params json.RawMessage) {
	report, ok := parseProgress(params)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.finished || report.Progress <= p.progress {
		return
	}
	p.progress = report.Progress
	p.timeout.extend()
	if p.caller != nil && p.caller.Progress != nil {
		p.notify(func() { p.caller.Progress(report) })
	}
}

// handleLog passes a log message on.
func (p *inflight) handleLog(params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished || p.caller == nil || p.caller.Log == nil {
		return
	}
	entry := tool.Log{}
	entry.Level, _ = rawjson.GetText(params, "level")
	entry.Logger, _ = rawjson.GetText(params, "logger")
	entry.Data, _ = rawjson.Get(params, "data")
	p.notify(func() { p.caller.Log(entry) })
}

// notify queues a notification for the caller; p.mu is held. Most calls have
// none, so the first one starts the goroutine that delivers them.
func (p *inflight) notify(deliver func()) {
	if p.queue == nil {
		queue, delivered := make(chan func(), notificationQueue), make(chan struct{})
		p.queue, p.delivered = queue, delivered
		go func() {
			defer close(delivered)
			for deliver := range queue {
				deliver()
			}
		}()
	}
	select {
	case p.queue <- deliver:
	default:
	}
}

// ask asks the caller a question of the server. It ends when the call does.
func (p *inflight) ask(ctx context.Context, question tool.Question) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.mu.Lock()
	p.questions = append(p.questions, cancel)
	finished := p.finished
	p.mu.Unlock()
	if finished {
		return nil, errCallOver
	}
	replies, err := askCaller(ctx, p.caller, p.timeout, []tool.Question{question})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// finish ends the questions and waits until the caller has received all
// notifications.
func (p *inflight) finish() {
	p.mu.Lock()
	p.finished = true
	for _, cancel := range p.questions {
		cancel(errCallOver)
	}
	delivered := p.delivered
	if p.queue != nil {
		close(p.queue)
	}
	p.mu.Unlock()
	if delivered != nil {
		<-delivered
	}
}

func parseProgress(params json.RawMessage) (p tool.Progress, ok bool) {
	raw, _ := rawjson.Get(params, "progress")
	if p.Progress, ok = rawjson.Number(raw); !ok {
		return p, false
	}
	if raw, found := rawjson.Get(params, "total"); found {
		p.Total, _ = rawjson.Number(raw)
	}
	p.Message, _ = rawjson.GetText(params, "message")
	return p, true
}
