package zmtp

import (
	"context"
	"time"
)

// write sends messages, heartbeats and what else is due until ctx ends. The
// batch it is writing when the connection breaks counts as sent.
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
			err = l.writeDue()
		case <-beat:
			err = l.writeBeat()
		case m := <-l.out.items:
			err = l.writeBatch(m)
		}
		if err != nil {
			return err
		}
	}
}

// writeBatch writes m and what else waits, up to a bound, in one go.
func (l *link) writeBatch(m Message) error {
	written := 0
	for more := true; more; {
		writeMessage(l.w, m)
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

// writeBeat sends a PING to a peer that knows what that is.
func (l *link) writeBeat() error {
	if !l.beats.Load() {
		return nil
	}
	writeFrame(l.w, flagCommand, ping(l.opts.Heartbeat.TTL))
	return l.w.Flush()
}

// writeDue sends the PONG we owe and tells the peer how our subscriptions changed.
func (l *link) writeDue() error {
	l.mu.Lock()
	pong := l.pong
	l.pong = nil
	l.mu.Unlock()
	if pong != nil {
		writeFrame(l.w, flagCommand, pong)
	}
	if l.tell != nil {
		l.writeTopics(l.tell.copy())
	}
	return l.w.Flush()
}

// writeTopics brings the peer from what it was told to what is wanted.
func (l *link) writeTopics(wanted map[string]struct{}) {
	for topic := range l.told {
		if _, still := wanted[topic]; !still {
			l.writeTopic(topic, cmdCancel, 0)
		}
	}
	for topic := range wanted {
		if _, known := l.told[topic]; !known {
			l.writeTopic(topic, cmdSubscribe, 1)
		}
	}
	l.told = wanted
}

// writeTopic subscribes or cancels: by a command, or to a peer of ZMTP 3.0 by a
// message whose first byte says which.
func (l *link) writeTopic(topic, cmd string, old byte) {
	if l.peer.Minor >= 1 {
		writeFrame(l.w, flagCommand, command(cmd, []byte(topic)...))
		return
	}
	writeFrame(l.w, 0, append([]byte{old}, topic...))
}
