package zmtp

import (
	"context"
	"time"
)

// write writes messages, heartbeats, PONGs and subscriptions until ctx ends. A
// batch being written when the connection fails counts as sent.
func (l *link) write(ctx context.Context) error {
	var beat <-chan time.Time
	if every := l.opts.Heartbeat.Interval; every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.wake:
			err = l.writePending()
		case <-beat:
			err = l.writePing()
		case m := <-l.out.items:
			err = l.writeBatch(m)
		}
		if err != nil {
			return err
		}
	}
}

// writeBatch writes m and further queued messages, up to a limit, with one flush.
func (l *link) writeBatch(m Message) error {
	written := 0
	for more := true; more; {
		l.writeMessage(m)
		written += m.size()
		more = false
		if written < batch {
			select {
			case m = <-l.out.items:
				more = true
			default:
			}
		}
	}
	err := l.w.Flush()
	l.out.release(written)
	return err
}

// writePing sends a PING to a peer that supports it.
func (l *link) writePing() error {
	if !l.heartbeats.Load() {
		return nil
	}
	l.writeFrame(flagCommand, ping(l.opts.Heartbeat.TTL))
	return l.w.Flush()
}

// writePending writes the pending PONG and changes of our subscriptions.
func (l *link) writePending() error {
	l.mu.Lock()
	pong := l.pong
	l.pong = nil
	l.mu.Unlock()
	if pong != nil {
		l.writeFrame(flagCommand, pong)
	}
	if l.subscriptions != nil {
		l.writeTopics(l.subscriptions.copy())
	}
	return l.w.Flush()
}

// writeTopics writes the difference between the subscriptions sent before and
// those wanted.
func (l *link) writeTopics(wanted map[string]struct{}) {
	for topic := range l.sent {
		if _, still := wanted[topic]; !still {
			l.writeTopic(topic, cmdCancel, 0)
		}
	}
	for topic := range wanted {
		if _, known := l.sent[topic]; !known {
			l.writeTopic(topic, cmdSubscribe, 1)
		}
	}
	l.sent = wanted
}

// writeTopic subscribes or unsubscribes: with a command or, for a peer that uses
// ZMTP 3.0, with a message that begins with the byte old.
func (l *link) writeTopic(topic, cmd string, old byte) {
	if l.peer.Minor >= 1 {
		l.writeFrame(flagCommand, command(cmd, []byte(topic)...))
		return
	}
	l.writeFrame(0, append([]byte{old}, topic...))
}
