package upstream

import (
	"context"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// pipe writes messages into a process's input, one per line, through a goroutine
// of its own, so that a process that does not read cannot hold a caller whose
// time is over. It knows how far the process has read when that ends.
type pipe struct {
	*dispatcher
	queue chan *letter
	wg    sync.WaitGroup

	into    *os.File
	writing sync.Mutex // held while a letter goes in
	wrote   int64      // bytes so far
	over    atomic.Bool
	read    atomic.Int64 // bytes the process has read, once it has ended
}

// letter is a message on its way.
type letter struct {
	ctx  context.Context // of whoever sends it: what nobody waits for is not sent
	data []byte
	from atomic.Int64 // where in the stream it begins; notYet before that
	sent chan error   // gets one value
}

const notYet = math.MaxInt64

// newPipe starts writing to into. The owner fails the pipe when the process has
// ended, and then waits for wg.
func newPipe(hooks Hooks, into *os.File) *pipe {
	p := &pipe{dispatcher: newDispatcher(hooks), queue: make(chan *letter, 16), into: into}
	p.read.Store(math.MaxInt64 - 1)
	p.wg.Go(func() {
		for {
			select {
			case l := <-p.queue:
				l.sent <- p.write(l)
			case <-p.done:
				return
			}
		}
	})
	return p
}

func (p *pipe) write(l *letter) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	switch {
	case p.over.Load():
		return notSent(errProcess)
	case l.ctx.Err() != nil:
		return notSent(context.Cause(l.ctx))
	}
	l.from.Store(p.wrote)
	n, err := p.into.Write(append(l.data, '\n'))
	p.wrote += int64(n)
	if err != nil && n == 0 {
		return notSent(err)
	}
	return err
}

// post queues a message.
func (p *pipe) post(ctx context.Context, m wire.Message) (*letter, error) {
	l := &letter{ctx: ctx, data: m.Append(nil), sent: make(chan error, 1)}
	l.from.Store(notYet)
	select {
	case p.queue <- l:
		return l, nil
	case <-p.done:
		return nil, notSent(p.Err())
	case <-ctx.Done():
		return nil, notSent(context.Cause(ctx))
	}
}

// Call implements Link.
func (p *pipe) Call(ctx context.Context, out Outgoing) (wire.Message, error) {
	answer, err := p.expect(out.Message.ID)
	if err != nil {
		return wire.Message{}, err
	}
	defer p.forget(out.Message.ID)
	l, err := p.post(ctx, out.Message)
	if err != nil {
		return wire.Message{}, err
	}
	select {
	case r := <-answer:
		return r.message, r.err
	case <-ctx.Done():
		return wire.Message{}, context.Cause(ctx)
	case <-p.done:
	}
	select {
	case r := <-answer: // it came just before the end
		return r.message, r.err
	default:
	}
	if l.from.Load() >= p.read.Load() {
		return wire.Message{}, notSent(p.Err())
	}
	return wire.Message{}, p.Err()
}

// Send implements Link.
func (p *pipe) Send(ctx context.Context, m wire.Message) error {
	l, err := p.post(ctx, m)
	if err != nil {
		return err
	}
	select {
	case err := <-l.sent:
		return err
	case <-p.done:
		return p.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settleUp finds out how much of its input the process had read when it ended:
// a letter it never began to read may be sent again, whatever it does. theirs is
// the process's own end of the pipe.
func (p *pipe) settleUp(theirs *os.File) {
	p.over.Store(true)
	left := unread(theirs)
	for !p.writing.TryLock() { // a letter is going in: make room for the rest of it
		if p.Err() != nil {
			return
		}
		left += unread(theirs)
		time.Sleep(time.Millisecond)
	}
	defer p.writing.Unlock()
	p.read.Store(p.wrote - left - unread(theirs))
}
