package egress

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

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
