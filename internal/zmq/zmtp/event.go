package zmtp

import "time"

// Event is something that happened to a connection.
type Event struct {
	Type EventType
	// Peer is who it happened with, as far as they introduced themselves.
	Peer Peer
	// Err is why a peer was lost or refused. A peer that hung up between two
	// messages leaves io.EOF.
	Err error
	// Retry is when a dialing socket tries again.
	Retry time.Duration
	// Unsent is what was queued for a lost peer and certainly never written to
	// it, in order. Of what was written nobody knows how far it came.
	Unsent []Message
	// Topic is what a peer at a PUB subscribed to or no longer wants.
	Topic string
}

// EventType names an event.
type EventType uint8

// The events.
const (
	// Connected is a peer that can be talked to.
	Connected EventType = iota + 1
	// Disconnected is a peer that was connected and no longer is.
	Disconnected
	// Refused is a connection that never came to be: nobody there, no agreement
	// on the protocol, too many peers, an identity in use.
	Refused
	// Subscribed is a peer at a PUB that wants a further topic.
	Subscribed
	// Unsubscribed is a peer at a PUB that no longer wants one.
	Unsubscribed
)

// String is the event in one word.
func (w EventType) String() string {
	switch w {
	case Connected:
		return "connected"
	case Disconnected:
		return "disconnected"
	case Refused:
		return "refused"
	case Subscribed:
		return "subscribed"
	case Unsubscribed:
		return "unsubscribed"
	default:
		return "unknown event"
	}
}

// Peer is the other end of a connection.
type Peer struct {
	// Identity is its own name for itself; at a ROUTER, which needs one, an
	// invented one that begins with a zero byte where it has none.
	Identity string
	// Kind is its socket type as the wire has it, such as "ROUTER".
	Kind string
	// Addr is where it is connected from or, for a dialing socket, to.
	Addr string
	// Minor is the minor version of ZMTP 3 it speaks.
	Minor int
}
