package egress

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// How a program asked for a connection, for Connection.Protocol.
const (
	Tunnel = "connect" // HTTP CONNECT
	HTTP   = "http"    // plain HTTP
	Direct = "direct"  // without a proxy, caught by its name
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

// maxHistory is how many ended connections of a program are kept.
const maxHistory = 200

// maxHosts is how many destinations of a program are counted.
const maxHosts = 1000

// Host is what is known of all connections of a program to one destination.
type Host struct {
	Host        string    `json:"host"`
	Port        uint16    `json:"port"`
	Connections int64     `json:"connections"`
	Refused     int64     `json:"refused,omitempty"`
	Failed      int64     `json:"failed,omitempty"`
	Sent        int64     `json:"sent"`
	Received    int64     `json:"received"`
	Last        time.Time `json:"last"`
}

// history holds the connections of all programs, across their restarts.
type history struct {
	mu       sync.Mutex
	programs map[string]*programHistory
}

type programHistory struct {
	open  map[*track]bool
	ended []Connection // the oldest first
	hosts map[destinationKey]*Host
}

type destinationKey struct {
	host string
	port uint16
}

func (h *history) of(name string) *programHistory {
	p := h.programs[name]
	if p == nil {
		p = &programHistory{open: map[*track]bool{}, hosts: map[destinationKey]*Host{}}
		if h.programs == nil {
			h.programs = map[string]*programHistory{}
		}
		h.programs[name] = p
	}
	return p
}

// begin adds an open connection.
func (h *history) begin(t *track) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(t.about.Server).open[t] = true
}

// change changes what is known of an open connection.
func (h *history) change(t *track, f func(*Connection)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&t.about)
}

// end moves a connection to the ended ones and returns it.
func (h *history) end(t *track, at time.Time) Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := t.now()
	c.TookMS = at.Sub(c.Started).Milliseconds()
	if c.Outcome == Open {
		c.Outcome = Closed
	}
	p := h.of(c.Server)
	delete(p.open, t)
	if len(p.ended) >= maxHistory {
		p.ended = slices.Delete(p.ended, 0, 1)
	}
	p.ended = append(p.ended, c)
	p.count(c)
	return c
}

func (p *programHistory) count(c Connection) {
	key := destinationKey{c.Host, c.Port}
	host := p.hosts[key]
	if host == nil {
		if len(p.hosts) >= maxHosts {
			return
		}
		host = &Host{Host: c.Host, Port: c.Port}
		p.hosts[key] = host
	}
	host.Connections++
	host.Sent += c.Sent
	host.Received += c.Received
	host.Last = c.Started
	switch c.Outcome {
	case Refused:
		host.Refused++
	case Failed:
		host.Failed++
	}
}

// connections are those of a program, the newest first.
func (h *history) connections(name string) []Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.programs[name]
	if p == nil {
		return nil
	}
	list := slices.Clone(p.ended)
	for t := range p.open {
		list = append(list, t.now())
	}
	slices.SortStableFunc(list, func(a, b Connection) int { return b.Started.Compare(a.Started) })
	return list
}

// hosts are the destinations of a program, in order.
func (h *history) hosts(name string) []Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.programs[name]
	if p == nil {
		return nil
	}
	list := make([]Host, 0, len(p.hosts))
	for _, host := range p.hosts {
		list = append(list, *host)
	}
	slices.SortFunc(list, func(a, b Host) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port)) })
	return list
}

// forget removes what is known of a program.
func (h *history) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.programs[name]; p != nil {
		p.ended, p.hosts = nil, map[destinationKey]*Host{}
	}
}
