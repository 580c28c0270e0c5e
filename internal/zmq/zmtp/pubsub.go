package zmtp

import (
	"context"

	"github.com/luanette/luanette/internal/base/fault"
)

// pub sends to every peer that subscribed, and drops messages for peers whose
// queue is full.
type pub struct{ *Socket }

func (p pub) join(l *link) error {
	l.topics = newTopics()
	p.peers.add(l)
	return nil
}

func (p pub) send(_ context.Context, m Message) error {
	for _, l := range p.peers.all() {
		if l.topics.match(m[0]) && l.out.offer(m) != nil {
			p.dropped.Add(1)
		}
	}
	return nil
}

// receive reads the subscriptions of ZMTP 3.0, which are messages of one frame.
// Other messages of a subscriber are ignored.
func (p pub) receive(_ context.Context, l *link, m Message) error {
	if len(m) != 1 || len(m[0]) == 0 || m[0][0] > 1 {
		return nil
	}
	return p.subscribe(l, m[0][1:], m[0][0] == 1)
}

func (p pub) subscribe(l *link, topic []byte, want bool) error {
	if len(topic) > maxTopic {
		return violation("subscribe: a topic of more than %d bytes", maxTopic)
	}
	event := Event{Type: Unsubscribed, Peer: l.peer, Topic: string(topic)}
	changed, err := false, error(nil)
	if want {
		event.Type = Subscribed
		changed, err = l.topics.add(event.Topic, p.opts.MaxTopics)
	} else {
		changed = l.topics.remove(event.Topic)
	}
	if changed {
		p.opts.OnEvent(event)
	}
	return err
}

// sub receives what it subscribed to.
type sub struct{ *Socket }

// join adds l to the peers and sends it our subscriptions.
func (s sub) join(l *link) error {
	l.subscriptions = s.topics
	s.peers.add(l)
	signal(l.wake)
	return nil
}

func (sub) send(context.Context, Message) error {
	return fault.New(fault.InvalidParams, "a SUB socket only receives").WithHint("send on a PUB socket")
}

// receive drops messages without a subscription, which may have ended meanwhile.
func (s sub) receive(ctx context.Context, _ *link, m Message) error {
	if !s.topics.match(m[0]) {
		return nil
	}
	return s.in.put(ctx, m)
}

func (sub) subscribe(*link, []byte, bool) error { return nil }
