// Package zmtp implements ZMTP 3.1, the protocol between ZeroMQ sockets, so that
// the other end can be a program in any language with a ZeroMQ library. It
// supports the sockets DEALER, ROUTER, PUB and SUB over TCP and Unix sockets, without
// security or with CURVE. As in ZeroMQ, messages have several frames and arrive
// whole, lost connections are retried, and queues are limited.
//
// It differs from libzmq in that a message is only queued for an established
// connection: Send on a DEALER waits for one, and messages that a lost connection
// leaves unwritten are returned in the Disconnected event. Close drops queued messages (a linger of zero); Flush waits until
// they are written.
//
// Without Options.Curve there is no authentication and no encryption: listen on a
// loopback address or a Unix socket.
package zmtp

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
)

// Kind is the messaging pattern of a socket.
type Kind uint8

// The kinds of sockets.
const (
	// Dealer dials one peer, sends to it and receives from it.
	Dealer Kind = iota + 1
	// Router listens, puts the sender's identity before each message it receives, and
	// takes the first frame of what it sends as the identity to send to.
	Router
	// Pub listens, and sends to every peer that subscribed to a prefix of the message.
	Pub
	// Sub dials, and receives messages that begin with one of its subscriptions.
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

// accepts reports whether a socket of this kind may connect to the peer's kind.
func (k Kind) accepts(peer string) bool {
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

// Message is the frames of one message, at least one. The socket owns a message
// once it is sent; the receiver owns a message it received.
type Message [][]byte

// frameCost is added to the length of each frame: its header on the wire, so that
// empty frames count too.
const frameCost = 9

// size is the size of a message in queues and against limits, in bytes.
func (m Message) size() int {
	n := 0
	for _, frame := range m {
		n += len(frame) + frameCost
	}
	return n
}

// The errors of Send and Recv wrap these.
var (
	ErrClosed = errors.New("the socket is closed")
	ErrNoPeer = errors.New("no such peer is connected")
)

// contextError is the error of waiting until ctx ended.
func contextError(ctx context.Context) error {
	return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "")
}

// violation is the error for a peer that violates the protocol.
func violation(format string, args ...any) *fault.Error {
	return fault.New(fault.Upstream, format, args...).
		WithHint("check that the other end is a ZeroMQ socket of a compatible kind, without PLAIN or GSSAPI security")
}
