package zmtp

import (
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
)

// Defaults of Options.
const (
	DefaultQueue     = 1000
	DefaultBytes     = 64 << 20
	DefaultFrames    = 1024
	DefaultPeers     = 1024
	DefaultTopics    = 4096
	DefaultHandshake = 10 * time.Second
	DefaultInterval  = 30 * time.Second
)

// Options configure a socket. The zero value uses the defaults.
type Options struct {
	// Identity is the name by which a ROUTER at the other end knows this socket, up
	// to 255 bytes, the first of them not zero. If it is empty, the ROUTER generates
	// a unique one for each connection. A ROUTER of libzmq that has not noticed the
	// end of a connection ignores the next one with the same identity: set one only
	// where it is needed, and then use heartbeats.
	Identity string

	// SendQueue and SendBytes limit what waits to be written to one peer, in
	// messages and in bytes: 1000 and 64 MiB when zero. A single message larger
	// than SendBytes is queued alone.
	SendQueue, SendBytes int
	// RecvQueue and RecvBytes limit what was read from all peers and waits for
	// Recv: 1000 and 64 MiB when zero. Beyond that, nothing more is read.
	RecvQueue, RecvBytes int
	// Overflow is what Send does when the queue is full or there is no peer.
	Overflow Overflow

	// MaxMessage limits the bytes of a message from a peer (64 MiB when zero) and
	// MaxFrames its frames (1024). A peer that sends more is disconnected.
	MaxMessage, MaxFrames int
	// MaxPeers limits the connections of a listening socket: 1024 when zero.
	MaxPeers int
	// MaxTopics limits the subscriptions of one peer of a PUB: 4096 when zero.
	MaxTopics int
	// Handshake limits the time for connecting and the handshake: 10 s when zero.
	Handshake time.Duration
	// Heartbeat detects peers that no longer answer.
	Heartbeat Heartbeat
	// Reconnect is how long a dialing socket waits between attempts.
	Reconnect backoff.Policy
	// Handover lets a new peer of a ROUTER take over the identity of one that is
	// still connected. Without it the new peer is refused until the other one
	// disconnects.
	Handover bool

	// Curve, if set, authenticates and encrypts all connections; nil means the NULL
	// mechanism, without security.
	Curve *Curve

	// Control, if set, may reject an address before a socket dials it, after name
	// resolution; see net.Dialer.Control.
	Control func(network, address string, conn syscall.RawConn) error

	// OnEvent, if set, is called when something happens to a connection: with
	// Connected before the first message of that peer can be received, with
	// Disconnected after its last. It is called from many goroutines, must return
	// quickly, and must not close the socket.
	OnEvent func(Event)
}

// Heartbeat configures the detection of dead peers. A peer that uses ZMTP 3.0 and
// has not sent a heartbeat itself gets none, since it may not know the command.
type Heartbeat struct {
	// Interval is how often a PING is sent: 30 s when zero, never when negative.
	Interval time.Duration
	// Timeout is how long after a PING the peer may stay silent before it is
	// disconnected: twice the interval when zero.
	Timeout time.Duration
	// TTL is how long the peer waits for a message from us before it disconnects,
	// in tenths of a second: interval plus timeout when zero, unlimited when
	// negative.
	TTL time.Duration
}

// Overflow is what Send does with a message that cannot be queued.
type Overflow uint8

// The overflow policies. A PUB always drops.
const (
	// ByKind waits on a DEALER and drops on a ROUTER.
	ByKind Overflow = iota
	// Wait waits for a peer and for space in its queue until the context ends. A
	// ROUTER cannot wait for an unknown identity: it returns ErrNoPeer.
	Wait
	// Drop drops the message, counts it and reports success.
	Drop
	// Refuse returns ErrNoPeer or ErrFull at once.
	Refuse
)

// filled is o with defaults filled in.
func (o Options) filled(kind Kind) Options {
	for _, bound := range []struct {
		value    *int
		fallback int
	}{
		{&o.SendQueue, DefaultQueue}, {&o.SendBytes, DefaultBytes},
		{&o.RecvQueue, DefaultQueue}, {&o.RecvBytes, DefaultBytes},
		{&o.MaxMessage, DefaultBytes}, {&o.MaxFrames, DefaultFrames},
		{&o.MaxPeers, DefaultPeers}, {&o.MaxTopics, DefaultTopics},
	} {
		if *bound.value <= 0 {
			*bound.value = bound.fallback
		}
	}
	if o.Handshake <= 0 {
		o.Handshake = DefaultHandshake
	}
	if o.Overflow == ByKind {
		o.Overflow = Wait
		if kind == Router {
			o.Overflow = Drop
		}
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	o.Heartbeat = o.Heartbeat.filled()
	return o
}

// filled is h with defaults filled in; then an interval of zero means none.
func (h Heartbeat) filled() Heartbeat {
	if h.Interval < 0 {
		return Heartbeat{}
	}
	if h.Interval == 0 {
		h.Interval = DefaultInterval
	}
	if h.Timeout <= 0 {
		h.Timeout = 2 * h.Interval
	}
	if h.TTL == 0 {
		h.TTL = h.silence()
	}
	h.TTL = max(h.TTL, 0)
	return h
}

// silence is how long a peer may be silent; zero means without limit.
func (h Heartbeat) silence() time.Duration {
	if h.Interval == 0 {
		return 0
	}
	return h.Interval + h.Timeout
}
