package zmtp

import (
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
)

// What zero options mean.
const (
	DefaultQueue     = 1000
	DefaultBytes     = 64 << 20
	DefaultFrames    = 1024
	DefaultPeers     = 1024
	DefaultTopics    = 4096
	DefaultHandshake = 10 * time.Second
	DefaultInterval  = 30 * time.Second
)

// Options say how a socket behaves. The zero value is a good one.
type Options struct {
	// Identity is the name a ROUTER at the other end knows this socket by, up to
	// 255 bytes, the first of them not zero. Empty lets that ROUTER invent one for
	// each connection, so that no two ever share theirs. A ROUTER of libzmq that
	// has not noticed the end of a connection ignores the next one under the same
	// name: give one only where it is needed, and then a heartbeat.
	Identity string

	// SendQueue and SendBytes bound what waits to be written to one peer, in
	// messages and in bytes: 1000 and 64 MiB when zero. A single message larger
	// than SendBytes is queued alone.
	SendQueue, SendBytes int
	// RecvQueue and RecvBytes bound what was read from all peers and waits for
	// Recv: 1000 and 64 MiB when zero. Beyond, nothing more is read from them.
	RecvQueue, RecvBytes int
	// Overflow is what Send does when there is no room or no peer.
	Overflow Overflow

	// MaxMessage bounds the bytes of a message from a peer (64 MiB when zero) and
	// MaxFrames its frames (1024). Who sends more is disconnected.
	MaxMessage, MaxFrames int
	// MaxPeers bounds the connections of a listening socket: 1024 when zero.
	MaxPeers int
	// MaxTopics bounds the subscriptions of one peer at a PUB: 4096 when zero.
	MaxTopics int
	// Handshake bounds how long it takes to connect and agree: 10 s when zero.
	Handshake time.Duration
	// Heartbeat finds peers that vanished without a word.
	Heartbeat Heartbeat
	// Reconnect is how long a dialing socket waits between attempts.
	Reconnect backoff.Policy
	// Handover lets a newcomer at a ROUTER take over the identity of a peer that
	// is still connected. Without it the newcomer is turned away until the other
	// one is gone.
	Handover bool

	// Control, when given, may refuse an address a socket dials, after its name was
	// resolved; see net.Dialer.Control.
	Control func(network, address string, conn syscall.RawConn) error

	// OnEvent, when given, is told what happens to connections: Connected before
	// the first message of that peer can be received, Disconnected after its
	// last. It is called from many goroutines, must not wait long, and must not
	// close the socket.
	OnEvent func(Event)
}

// Heartbeat is how a socket makes sure of its peers. Peers that speak ZMTP 3.0
// and never sent a heartbeat themselves are left alone, since they may not know
// the command.
type Heartbeat struct {
	// Interval is how often a PING is sent: 30 s when zero, never when negative.
	Interval time.Duration
	// Timeout is how long after a PING the peer may stay silent before it is
	// disconnected: twice the interval when zero.
	Timeout time.Duration
	// TTL is how long the peer shall wait for us before it gives us up, exact to
	// a tenth of a second: interval and timeout together when zero, and nothing
	// asked for when negative.
	TTL time.Duration
}

// Overflow is what Send does with a message it has no room for.
type Overflow uint8

// The ways to overflow. A PUB drops in any case.
const (
	// ByKind waits on a DEALER and drops on a ROUTER.
	ByKind Overflow = iota
	// Wait waits for a peer and for room until the context ends. A ROUTER cannot
	// wait for an identity it does not know: that is ErrNoPeer.
	Wait
	// Drop drops the message, counts it and reports success.
	Drop
	// Refuse returns ErrNoPeer or ErrFull at once.
	Refuse
)

// filled is o with its defaults in place.
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

// filled is h with its defaults in place; an interval of zero now means none.
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
		h.TTL = h.patience()
	}
	h.TTL = max(h.TTL, 0)
	return h
}

// patience is the longest silence of a living peer; zero is for ever.
func (h Heartbeat) patience() time.Duration {
	if h.Interval == 0 {
		return 0
	}
	return h.Interval + h.Timeout
}
