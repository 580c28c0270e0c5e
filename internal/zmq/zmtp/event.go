package zmtp

import "time"

// Event is something that happened to a connection.
type Event struct {
	Type EventType
	// Peer is the other end, as far as the handshake got.
	Peer Peer
	// Err is why a peer was lost or refused. It is io.EOF if the peer closed the
	// connection between two messages.
	Err error
	// Retry is the delay before a dialing socket connects again.
	Retry time.Duration
	// Unsent is the messages that were queued for a lost peer and never written to
	// it, in order. Messages that were written may or may not have arrived.
	Unsent []Message
	// Topic is what a peer of a PUB subscribed to or unsubscribed from.
	Topic string
}

// EventType is the type of an event.
type EventType uint8

// The types of events.
const (
	// Connected: the handshake with a peer succeeded.
	Connected EventType = iota + 1
	// Disconnected: the connection to a peer ended.
	Disconnected
	// Refused: no connection was established because no process listens, the
	// handshake failed, there are too many peers or the identity is in use.
	Refused
	// Subscribed: a peer of a PUB subscribed to a topic.
	Subscribed
	// Unsubscribed: a peer of a PUB unsubscribed from a topic.
	Unsubscribed
)

// String is the name of the type.
func (t EventType) String() string {
	switch t {
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
	// Identity is the name the peer gave itself. A ROUTER generates one that begins
	// with a zero byte for a peer without.
	Identity string
	// Kind is its socket type as sent on the wire, such as "ROUTER".
	Kind string
	// Addr is its remote address.
	Addr string
	// Minor is the minor version of ZMTP 3 it speaks.
	Minor int
}
