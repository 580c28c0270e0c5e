package zmtp

import (
	"context"
	"errors"
)

// pattern is the behaviour of one kind of socket.
type pattern interface {
	// join adds a link to the peers, or refuses it.
	join(l *link) error
	// send sends a message of at least one frame.
	send(ctx context.Context, m Message) error
	// receive handles a message from a peer, waiting for space in the queue until
	// ctx ends. An error disconnects the peer.
	receive(ctx context.Context, l *link, m Message) error
	// subscribe handles a peer's subscription or, if want is false, its end. An
	// error disconnects the peer.
	subscribe(l *link, topic []byte, want bool) error
}

func newPattern(s *Socket) pattern {
	switch s.kind {
	case Router:
		return router{s}
	case Pub:
		return pub{s}
	case Sub:
		return sub{s}
	default:
		return dealer{s}
	}
}

// dealer distributes messages round-robin.
type dealer struct{ *Socket }

func (d dealer) join(l *link) error {
	d.peers.add(l)
	return nil
}

// send queues the message for the next peer whose queue is not full. If all are
// full, it waits for the next one.
func (d dealer) send(ctx context.Context, m Message) error {
	for {
		err := d.offer(m)
		if err == nil || d.opts.Overflow != Wait {
			return err
		}
		if errors.Is(err, ErrNoPeer) {
			if err := d.peers.wait(ctx, d.done); err != nil {
				return err
			}
			continue
		}
		if l := d.peers.next(); l != nil {
			if err := l.out.put(ctx, m); !errors.Is(err, errQueueClosed) {
				return err
			}
		}
	}
}

// offer tries each peer once.
func (d dealer) offer(m Message) error {
	err := ErrNoPeer
	for range d.peers.all() {
		l := d.peers.next()
		if l == nil {
			break
		}
		switch e := l.out.offer(m); {
		case e == nil:
			return nil
		case errors.Is(e, ErrFull):
			err = e
		}
	}
	return err
}

func (d dealer) receive(ctx context.Context, _ *link, m Message) error { return d.in.put(ctx, m) }
func (dealer) subscribe(*link, []byte, bool) error                     { return nil }

// router sends to the peer whose identity is the message's first frame.
type router struct{ *Socket }

func (r router) join(l *link) error {
	if err := r.peers.addNamed(l, r.opts.Handover); err != nil {
		return err
	}
	l.prefix = []byte(l.peer.Identity)
	return nil
}

func (r router) send(ctx context.Context, m Message) error {
	l := r.peers.find(m[0])
	if l == nil || len(m) < 2 {
		return ErrNoPeer
	}
	m = m[1:]
	err := l.out.offer(m)
	if errors.Is(err, ErrFull) && r.opts.Overflow == Wait {
		err = l.out.put(ctx, m)
	}
	if errors.Is(err, errQueueClosed) {
		return ErrNoPeer
	}
	return err
}

// receive queues the message; the link put the sender's identity before it.
func (r router) receive(ctx context.Context, _ *link, m Message) error { return r.in.put(ctx, m) }
func (router) subscribe(*link, []byte, bool) error                     { return nil }
