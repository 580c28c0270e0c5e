// Package zmtp speaks ZMTP 3.1, the protocol between ZeroMQ sockets, so that a
// program in any language with a ZeroMQ library can be at the other end. It
// knows the sockets DEALER, ROUTER, PUB and SUB with the NULL mechanism over TCP
// and Unix sockets, and keeps to ZeroMQ's manners: whole messages of several
// frames, connections that come back by themselves, bounded queues.
//
// It differs from libzmq where a context can say better what is wanted. A
// message is queued for a living connection or not at all: Send on a DEALER
// waits for one, and what a lost connection leaves unwritten is handed back in
// the Disconnected event instead of going to whoever comes next. Closing drops
// what is queued (a linger of zero); Flush waits for it.
//
// NULL means that nobody proves who they are and everything is readable on the
// way: listen on a loopback address or a Unix socket, or behind something that
// does both.
package zmtp

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
)

// Kind is the pattern a socket follows.
type Kind uint8

// The kinds of sockets.
const (
	// Dealer sends to its peers in turn and receives from all.
	Dealer Kind = iota + 1
	// Router puts the sender's identity before each message it receives, and
	// takes the first frame of what it sends as the identity to send to.
	Router
	// Pub sends to every peer that subscribed to how the message begins.
	Pub
	// Sub receives what begins with one of its subscriptions.
	Sub
)

// String is the kind's name on the wire.
func (k Kind) String() string {
	switch k {
	case Dealer:
		return "DEALER"
	case Router:
		return "ROUTER"
	case Pub:
		return "PUB"
	case Sub:
		return "SUB"
	default:
		return "unknown kind"
	}
}

// meets tells whether a socket of this kind may talk to one of the peer's.
func (k Kind) meets(peer string) bool {
	switch k {
	case Dealer:
		return peer == "ROUTER" || peer == "DEALER" || peer == "REP"
	case Router:
		return peer == "DEALER" || peer == "ROUTER" || peer == "REQ"
	case Pub:
		return peer == "SUB" || peer == "XSUB"
	case Sub:
		return peer == "PUB" || peer == "XPUB"
	default:
		return false
	}
}

// Message is the frames of one message, of which there is at least one. What is
// sent belongs to the socket from then on; what is received, to the receiver.
type Message [][]byte

// frameCost is what a frame counts for beside its bytes: its header on the
// wire, and what keeps a queue of empty frames from being free.
const frameCost = 9

// size is what a message counts for in queues and against limits, in bytes.
func (m Message) size() int {
	n := 0
	for _, frame := range m {
		n += len(frame) + frameCost
	}
	return n
}

// Why a message could not be sent or received; the errors of Send and Recv wrap them.
var (
	ErrClosed = errors.New("the socket is closed")
	ErrNoPeer = errors.New("no such peer is connected")
	ErrFull   = errors.New("the peer's queue is full")
)

// expired is the error of waiting for longer than ctx allows.
func expired(ctx context.Context) error {
	return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "")
}

// violation is a peer that does not keep to the protocol.
func violation(format string, args ...any) *fault.Error {
	return fault.New(fault.Upstream, format, args...).
		WithHint("see that the other end is a ZeroMQ socket of a fitting kind, without CURVE or PLAIN security")
}
