package js

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// calls are the asynchronous calls of one run: each on its own goroutine, as many at a
// time as allowed, the rest queued. Fields not guarded by mu are used by the script's
// goroutine only.
type calls struct {
	host     Host
	limits   Limits
	made     int             // all calls, synchronous ones too
	waiting  []request       // not started yet
	inflight map[int]request // started and not reported to the script yet, by id
	bytes    int64           // of arguments that waiting and started calls hold
	underway *tally          // of the engine, which waits for calls that outlive their run
	wake     chan struct{}   // holds a token when a call has finished

	mu     sync.Mutex
	landed []answer // finished and not reported to the script yet, in order
}

// request is a call that the script made. Its id counts the script's asynchronous calls.
type request struct {
	id   int
	name string
	size int64 // of its arguments
	work func(context.Context) (json.RawMessage, error)
}

type answer struct {
	id   int
	text string
}

func newCalls(host Host, limits Limits, underway *tally) *calls {
	return &calls{host: host, limits: limits, underway: underway, inflight: map[int]request{}, wake: make(chan struct{}, 1)}
}

// count admits one more call, or returns why not.
func (c *calls) count() error {
	if c.made >= c.limits.Calls {
		return fault.New(fault.Limit, "the script's limit of %d calls is used up", c.made).
			WithHint("do more in one call, or raise the limit on calls")
	}
	c.made++
	return nil
}

// start begins or queues a call.
func (c *calls) start(ctx context.Context, id int, name string, args json.RawMessage) error {
	if err := c.count(); err != nil {
		return err
	}
	if !json.Valid(args) {
		return errTooDeep
	}
	q := request{id: id, name: name, size: int64(len(args))}
	if c.bytes+q.size > c.limits.Memory {
		return fault.New(fault.Limit, "the arguments of calls in flight are more than %d bytes", c.limits.Memory).
			WithHint("await some calls before starting more")
	}
	q.work = c.host.Start(name, args)
	c.bytes += q.size
	if len(c.inflight) >= c.limits.Parallel {
		c.waiting = append(c.waiting, q)
		return nil
	}
	c.launch(ctx, q)
	return nil
}

func (c *calls) launch(ctx context.Context, q request) {
	c.inflight[q.id] = q
	c.underway.run(func() {
		a := answer{q.id, encodeAnswer(guarded(func() (json.RawMessage, error) { return q.work(ctx) }))}
		c.mu.Lock()
		c.landed = append(c.landed, a)
		c.mu.Unlock()
		select {
		case c.wake <- struct{}{}:
		default:
		}
	})
}

// idle reports that no answer will arrive.
func (c *calls) idle() bool { return len(c.inflight) == 0 }

// next waits for the answer that the script gets next. If there are several calls, the
// host decides which.
func (c *calls) next(ctx context.Context) (answer, error) {
	id := 0
	if len(c.inflight) == 1 {
		for id = range c.inflight { // takes the only key
		}
	} else {
		var err error
		if id, err = c.host.Next(ctx, c.first); err != nil {
			return answer{}, err
		}
	}
	q, ok := c.inflight[id]
	if !ok {
		return answer{}, fault.New(fault.Conflict, "the host returned call %d, which the script did not make", id)
	}
	a, err := c.await(ctx, id)
	if err != nil {
		return answer{}, err
	}
	c.bytes -= q.size
	delete(c.inflight, id)
	if len(c.waiting) > 0 {
		c.launch(ctx, c.waiting[0])
		c.waiting = c.waiting[1:]
	}
	return a, nil
}

// first waits for any answer and returns its number.
func (c *calls) first(ctx context.Context) (int, error) {
	for {
		c.mu.Lock()
		id := 0
		if len(c.landed) > 0 {
			id = c.landed[0].id
		}
		c.mu.Unlock()
		if id != 0 {
			return id, nil
		}
		if err := c.sleep(ctx); err != nil {
			return 0, err
		}
	}
}

// await waits for one answer and takes it.
func (c *calls) await(ctx context.Context, id int) (answer, error) {
	for {
		c.mu.Lock()
		i := slices.IndexFunc(c.landed, func(a answer) bool { return a.id == id })
		if i >= 0 {
			a := c.landed[i]
			c.landed = slices.Delete(c.landed, i, i+1)
			c.mu.Unlock()
			return a, nil
		}
		c.mu.Unlock()
		if err := c.sleep(ctx); err != nil {
			return answer{}, err
		}
	}
}

// sleep waits until a call may have finished.
func (c *calls) sleep(ctx context.Context) error {
	if c.limits.Meter != nil {
		c.limits.Meter.Pause()
		defer c.limits.Meter.Resume()
	}
	select {
	case <-c.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abandon waits until the calls in progress have noticed that ctx ended, for at most the
// grace period: a host that ignores ctx cannot delay the run.
func (c *calls) abandon() {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		c.mu.Lock()
		under := len(c.inflight) - len(c.landed)
		c.mu.Unlock()
		if under == 0 {
			return
		}
		select {
		case <-c.wake:
		case <-timer.C:
			return
		}
	}
}

// names lists the calls in progress, for error messages.
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

// sync makes a synchronous call. It runs on another goroutine, so that a host that
// blocks cannot delay the run.
func (c *calls) sync(ctx context.Context, name string, args json.RawMessage) string {
	if err := c.count(); err != nil {
		return encodeAnswer(nil, err)
	}
	if !json.Valid(args) {
		return encodeAnswer(nil, errTooDeep)
	}
	done := make(chan string, 1)
	c.underway.run(func() {
		done <- encodeAnswer(guarded(func() (json.RawMessage, error) { return c.host.CallSync(ctx, name, args) }))
	})
	select {
	case text := <-done:
		return text
	case <-ctx.Done():
		return encodeAnswer(nil, context.Cause(ctx))
	}
}

// guarded converts a panic of the host to an error, so that one broken function does not
// end the process.
func guarded(call func() (json.RawMessage, error)) (_ json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "the function panicked: %v", p)
		}
	}()
	return call()
}

// Answers are passed to the prelude as one string whose first letter is the type.
const (
	answerValue     = "v" // JSON
	answerBig       = "b" // JSON with integers that a JavaScript number cannot hold
	answerUndefined = "u" // nothing
	answerError     = "e" // JSON: message, code, hint
)

// encodeAnswer encodes the host's answer for the prelude.
func encodeAnswer(result json.RawMessage, err error) string {
	switch {
	case err != nil:
		return encodeError(err)
	case len(result) == 0:
		return answerUndefined
	case !json.Valid(result):
		return encodeError(fault.New(fault.Internal, "the answer is not JSON"))
	default:
		return encodeJSON(result)
	}
}

// encodeJSON marks valid JSON for the prelude.
func encodeJSON(b []byte) string {
	if hasBigInteger(b) {
		return answerBig + string(b)
	}
	return answerValue + string(b)
}

func encodeError(err error) string {
	var body struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Hint    string `json:"hint,omitempty"`
	}
	body.Message = err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		body.Code, body.Hint = string(f.Code), fault.HintOf(err)
	}
	b, _ := json.Marshal(body) // strings always marshal
	return answerError + string(b)
}

// hasBigInteger reports whether valid JSON has 16 or more digits in a row outside
// strings: an integer that may exceed 2^53. The prelude checks exactly.
func hasBigInteger(b []byte) bool {
	digits, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString, digits = true, 0
		case c >= '0' && c <= '9':
			if digits++; digits >= 16 {
				return true
			}
		default:
			digits = 0
		}
	}
	return false
}
