package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
)

// slowStart is the time after which a start is reported as slow.
const slowStart = 15 * time.Second

// beginStart waits until the process may be started, and then sets the state. The
// caller calls end when the server is connected or the attempt has failed.
func (c *connection) beginStart(ctx context.Context) (end func(), err error) {
	if c.spec.Load().Command == "" {
		return func() {}, nil
	}
	turn := c.starts.join()
	c.phase.queue(turn)
	select {
	case <-turn.ready:
	case <-ctx.Done():
		c.starts.leave(turn)
		return nil, context.Cause(ctx)
	}
	c.phase.starting()
	slot := time.AfterFunc(maxSlotTime, func() {
		if !turn.byWork.Load() {
			c.starts.leave(turn)
		}
	})
	slow := time.AfterFunc(slowStart, c.reportSlowStart)
	return func() {
		slot.Stop()
		slow.Stop()
		c.starts.leave(turn)
		c.phase.started()
	}, nil
}

// reportSlowStart publishes that the process has not answered yet.
func (c *connection) reportSlowStart() {
	now := c.phase.now()
	seconds, hint := int(time.Since(now.since).Seconds()), c.startHint(now)
	c.publish(SlowStart{Upstream: c.name, Seconds: seconds, LastLine: now.lastLine, Hint: hint})
	c.log.Warn("still starting", "seconds", seconds, "last_line", now.lastLine, "hint", hint)
}

// startHint says what to do about a slow start.
func (c *connection) startHint(now situation) string {
	if hint := hintOf(now.err); hint != "" { // of the last attempt
		return hint
	}
	hint := fmt.Sprintf("it may take %v (start_timeout)", c.opts.startTimeout(*c.spec.Load()))
	if now.pkg == "" {
		hint = "the first start of npx, uvx or docker downloads the program; " + hint
	}
	if now.lastLine == "" {
		return "it has written nothing so far; " + hint
	}
	return hint
}

// waitReport tells a caller every few seconds that its call waits for the server.
// The numbers are tiny, so that the progress of the tool itself exceeds them.
type waitReport struct {
	caller *tool.Caller
	ticker *time.Ticker
	count  int
}

const reportInterval = 2 * time.Second

func newWaitReport(caller *tool.Caller) *waitReport {
	if caller == nil || caller.Progress == nil {
		return &waitReport{ticker: &time.Ticker{}}
	}
	return &waitReport{caller: caller, ticker: time.NewTicker(reportInterval)}
}

func (r *waitReport) send(text string) {
	r.count++
	r.caller.Progress(tool.Progress{Progress: float64(r.count) * 1e-6, Message: text})
}

func (r *waitReport) stop() {
	if r.caller != nil {
		r.ticker.Stop()
	}
}

// waitingText says what a call waits for.
func (c *connection) waitingText() string {
	now := c.phase.now()
	seconds := int(time.Since(now.since).Seconds())
	switch {
	case now.state == StateInstalling:
		return fmt.Sprintf("%s has been installing for %d s: %s", c.name, seconds, now.lastLine)
	case now.state == StateStarting && now.lastLine != "":
		return fmt.Sprintf("%s has been starting for %d s: %s", c.name, seconds, now.lastLine)
	case now.state == StateStarting:
		return fmt.Sprintf("%s has been starting for %d s", c.name, seconds)
	case now.queued:
		return fmt.Sprintf("%s waits until other programs have started", c.name)
	}
	return fmt.Sprintf("%s is %s for %d s", c.name, now.state, seconds)
}

// startQueue bounds how many processes start at once, so that many slow starts do
// not make each other time out. Those that a call waits for come first.
type startQueue struct {
	mu    sync.Mutex
	free  int
	queue []*startTurn
}

// startTurn is the place of one start in the queue, and then its slot.
type startTurn struct {
	ready  chan struct{} // closed when it has a slot
	needed bool          // a call waits for it
	left   bool
	byWork atomic.Bool // it is given up when the process has stopped working, not after a time
}

// maxSlotTime is how long a start keeps its slot where the system does not tell whether its
// process works.
const maxSlotTime = 30 * time.Second

// A start gives up its slot when its process with its children has used less than a twentieth of
// a processor for quietFor: it waits for something else, and must not hold up the others.
const (
	quietFor  = time.Second
	lookEvery = 250 * time.Millisecond
)

// work is what a process and its descendants have done.
type work struct {
	used   time.Duration // of processors
	waited time.Duration // until they had one
	busy   bool          // one of them computes, waits for a processor or reads from a disk
	known  bool          // false if the system does not tell
}

// yieldTurn gives up the slot of a start that has stopped working. It returns when the start has
// no slot any more.
func (c *connection) yieldTurn(ctx context.Context, look func() work) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var then time.Duration
	since := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		turn := c.phase.starts()
		if turn == nil {
			return
		}
		now := look()
		if !now.known {
			return
		}
		turn.byWork.Store(true)
		switch {
		case now.busy, now.used-then >= quietFor/20:
			then, since = now.used, time.Now()
		case time.Since(since) >= quietFor:
			c.starts.leave(turn)
			return
		}
	}
}

func newStartQueue(limit int) *startQueue { return &startQueue{free: limit} }

// join takes a slot, or the last place in the queue. The caller calls leave.
func (q *startQueue) join() *startTurn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &startTurn{ready: make(chan struct{})}
	q.queue = append(q.queue, t)
	q.next()
	return t
}

// prefer moves a turn before those that no call waits for.
func (q *startQueue) prefer(t *startTurn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.needed = true
}

// leave gives up the slot, or the place in the queue.
func (q *startQueue) leave(t *startTurn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	if at := slices.Index(q.queue, t); at >= 0 {
		q.queue = slices.Delete(q.queue, at, at+1)
		return
	}
	q.free++
	q.next()
}

// next gives free slots to those who wait; q.mu is held.
func (q *startQueue) next() {
	for q.free > 0 && len(q.queue) > 0 {
		at := max(slices.IndexFunc(q.queue, func(t *startTurn) bool { return t.needed }), 0)
		close(q.queue[at].ready)
		q.queue = slices.Delete(q.queue, at, at+1)
		q.free--
	}
}
