package egress

import (
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// How a program asked for a connection, for Connection.Protocol.
const (
	Tunnel = "connect" // HTTP CONNECT
	HTTP   = "http"    // plain HTTP
	SOCKS  = "socks5"
	Direct = "direct" // without a proxy, caught by its name
)

// What became of a connection, for Connection.Outcome.
const (
	Open    = "open"
	Closed  = "closed"
	Refused = "refused" // it is not allowed
	Failed  = "failed"  // the destination could not be reached
)

// Connection is one connection of a program, or one request of plain HTTP.
type Connection struct {
	Server   string    `json:"server"` // the program's name
	Host     string    `json:"host"`
	Port     uint16    `json:"port"`
	Address  string    `json:"address,omitempty"` // that was dialled
	Protocol string    `json:"protocol"`
	Outcome  string    `json:"outcome"`
	Rule     string    `json:"rule,omitempty"`   // the entry of network that allowed it
	Reason   string    `json:"reason,omitempty"` // why it was refused or failed
	Allow    string    `json:"allow,omitempty"`  // the entry of network that would allow it
	Started  time.Time `json:"started"`
	TookMS   int64     `json:"took_ms"`
	Sent     int64     `json:"sent"` // bytes, by the program
	Received int64     `json:"received"`
	Requests int64     `json:"requests,omitempty"` // that were seen, if the proxy reads the connection
	Secrets  []string  `json:"secrets,omitempty"`  // names of those that were put into requests
}

// Destination is host:port.
func (c Connection) Destination() string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}

// Line is what to write into the configuration to allow a refused connection; empty if
// nothing can.
func (c Connection) Line() string {
	if c.Allow == "" {
		return ""
	}
	return fmt.Sprintf("network = [%q]", c.Allow)
}

// Ended is the event of a connection that has ended. Its key is the name of the program.
type Ended struct{ Connection }

// EventType is "sandbox.connection".
func (Ended) EventType() string { return "sandbox.connection" }

// EventKey is the name of the program.
func (e Ended) EventKey() string { return e.Server }

// RefusedConnection is the event of a connection that is not allowed. Its key is the name
// of the program.
type RefusedConnection struct {
	Connection
	Hint string `json:"hint,omitempty"` // what would allow it
}

// EventType is "sandbox.connection_refused".
func (RefusedConnection) EventType() string { return "sandbox.connection_refused" }

// EventKey is the name of the program.
func (e RefusedConnection) EventKey() string { return e.Server }

// track is a connection that may still be open.
type track struct {
	gateway  *Gateway
	about    Connection // guarded by the history's lock
	sent     atomic.Int64
	received atomic.Int64
	requests atomic.Int64
}

// now is what is known of the connection at the moment.
func (t *track) now() Connection {
	c := t.about
	c.Sent, c.Received, c.Requests = t.sent.Load(), t.received.Load(), t.requests.Load()
	return c
}
