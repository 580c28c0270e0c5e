package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/wire"
)

// pipe matches responses to requests on a link that has a single stream each
// way. Its owner feeds it what arrives; it writes through one goroutine, so that
// a server that does not read cannot hold a caller whose time is over.
type pipe struct {
	hooks Hooks
	queue chan *parcel
	done  chan struct{}
	wg    sync.WaitGroup

	mu      sync.Mutex
	waiting map[wire.ID]chan reply
	err     error
	read    int64 // how much of the stream the server has read, once it is over
}

// reply is how a call ended.
type reply struct {
	message wire.Message
	err     error
}

// parcel is one message on its way out.
type parcel struct {
	ctx     context.Context // of whoever sends it: parcels nobody waits for are not sent
	data    []byte
	written atomic.Bool
	from    atomic.Int64
	sent    chan error // gets one value
}

// begin says that the parcel goes out now: one cut off halfway counts as seen.
// from is where in the stream it begins; zero for transports that do not count.
func (p *parcel) begin(from int64) {
	p.from.Store(from)
	p.written.Store(true)
}

func newParcel(ctx context.Context, m wire.Message) *parcel {
	return &parcel{ctx: ctx, data: m.Append(nil), sent: make(chan error, 1)}
}

// newPipe starts writing through write, which begins each parcel it is given and
// is never called concurrently. The owner calls fail when the stream ends, and
// then waits for wg.
func newPipe(hooks Hooks, write func(*parcel) error) *pipe {
	p := &pipe{
		hooks:   hooks,
		queue:   make(chan *parcel, 16),
		done:    make(chan struct{}),
		waiting: make(map[wire.ID]chan reply),
		read:    math.MaxInt64,
	}
	p.wg.Go(func() { p.writeAll(write) })
	return p
}

func (p *pipe) writeAll(write func(*parcel) error) {
	for {
		select {
		case out := <-p.queue:
			err := out.ctx.Err()
			if err == nil {
				if err = write(out); errors.Is(err, ErrNotSent) {
					out.written.Store(false)
				}
			}
			out.sent <- err
			var refused *statusError // only this message was not to its liking
			if err != nil && out.ctx.Err() == nil && !errors.As(err, &refused) {
				p.fail(fmt.Errorf("write: %w", err))
			}
		case <-p.done:
			return
		}
	}
}

// Call implements Link.
func (p *pipe) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	answer := make(chan reply, 1)
	if err := p.await(out.Message.ID, answer); err != nil {
		return wire.Message{}, err
	}
	defer p.forget(out.Message.ID)
	letter := newParcel(ctx, out.Message)
	select {
	case p.queue <- letter:
	case <-p.done:
		return wire.Message{}, notSent(p.Err())
	case <-ctx.Done():
		return wire.Message{}, notSent(context.Cause(ctx))
	}
	sent := letter.sent
	for over := false; !over; {
		select {
		case r := <-answer:
			return r.message, r.err
		case <-ctx.Done():
			return wire.Message{}, context.Cause(ctx)
		case err := <-sent:
			if err != nil {
				return wire.Message{}, err
			}
			sent = nil
		case <-p.done:
			over = true
		}
	}
	select {
	case r := <-answer: // it came just before the end
		return r.message, r.err
	default:
	}
	return wire.Message{}, p.verdict(letter)
}

// verdict is how the pipe ended for a letter that got no answer.
func (p *pipe) verdict(letter *parcel) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !letter.written.Load() || letter.from.Load() >= p.read {
		return notSent(p.err)
	}
	return p.err
}

// Send implements Link.
func (p *pipe) Send(ctx context.Context, m wire.Message) error {
	letter := newParcel(ctx, m)
	select {
	case p.queue <- letter:
	case <-p.done:
		return notSent(p.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-letter.sent:
		return err
	case <-p.done:
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// receive takes one message off the stream. It reports whether it was one.
func (p *pipe) receive(data []byte) bool {
	m, err := wire.Parse(tidy(data))
	if err != nil {
		p.hooks.Garbage(excerpt(data))
		return false
	}
	if !m.IsResponse() {
		p.hooks.Inbox("", m)
		return true
	}
	p.settle(m.ID, reply{message: m})
	return true
}

// settle ends the call of that id.
func (p *pipe) settle(id wire.ID, r reply) {
	p.mu.Lock()
	answer := p.waiting[id]
	delete(p.waiting, id)
	p.mu.Unlock()
	if answer != nil {
		answer <- r
	}
}

func (p *pipe) await(id wire.ID, answer chan reply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return notSent(p.err)
	}
	p.waiting[id] = answer
	return nil
}

func (p *pipe) forget(id wire.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// fail ends the pipe; the first reason stays.
func (p *pipe) fail(err error) { p.failAfter(err, math.MaxInt64) }

// failAfter is fail when it is known how much the server has read.
func (p *pipe) failAfter(err error, read int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err, p.read = err, read
		close(p.done)
	}
}

// Done implements Link.
func (p *pipe) Done() <-chan struct{} { return p.done }

// Err implements Link.
func (p *pipe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Adopt implements Link: a stream has no header to say it in.
func (p *pipe) Adopt(string) {}
