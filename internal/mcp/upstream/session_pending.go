package upstream

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// pendingCall is a request that awaits its response. The server's progress
// notifications, log messages and questions reach the caller through it, in order
// and before the response does.
type pendingCall struct {
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

// notificationQueue is how many notifications may wait for the caller. Further
// ones are dropped, because a slow caller must not block the server's stream.
const notificationQueue = 256

// handleProgress passes a progress notification on if the progress increases.
func (p *pendingCall) handleProgress(params json.RawMessage) {
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
func (p *pendingCall) handleLog(params json.RawMessage) {
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
func (p *pendingCall) notify(deliver func()) {
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
func (p *pendingCall) ask(ctx context.Context, question tool.Question) (json.RawMessage, error) {
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
func (p *pendingCall) finish() {
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
