// Package history keeps how many calls there were, how many failed and how long they
// took: of the last hour in fine steps and of the last day in coarse ones, of each
// server and of each tool. It is held in memory, bounded, and ends with the process.
package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
)

const (
	hourStep   = 10 * time.Second
	dayStep    = 5 * time.Minute
	serverStep = time.Minute // of one server; there may be many

	maxServers = 500
	maxTools   = 2000
)

// Call is a finished call of an upstream's tool.
type Call struct {
	Server, Tool string
	Took         time.Duration
	Failed       bool
	Bytes        int // of the result
}

// Calls counts calls. It is safe for concurrent use; nil counts nothing.
type Calls struct {
	clock clock.Clock

	mu        sync.Mutex
	hour, day *series
	servers   map[string]*series
	tools     map[toolName]*tally
}

type toolName struct{ server, tool string }

// New returns an empty history. A nil clock is the machine's.
func New(c clock.Clock) *Calls {
	if c == nil {
		c = clock.Real()
	}
	return &Calls{
		clock: c, hour: newSeries(time.Hour, hourStep), day: newSeries(24*time.Hour, dayStep),
		servers: map[string]*series{}, tools: map[toolName]*tally{},
	}
}

// Record counts a call that ends now.
func (c *Calls) Record(call Call) {
	if c == nil {
		return
	}
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hour.add(now, call)
	c.day.add(now, call)
	c.server(call.Server).add(now, call)
	c.tool(call).add(now, call)
}

// server returns the series of a server; mu is held. Names are cloned, so that they do
// not keep a whole message in memory.
func (c *Calls) server(name string) *series {
	s := c.servers[name]
	if s == nil {
		makeRoom(c.servers, maxServers, func(s *series) int64 { return s.last })
		s = newSeries(time.Hour, serverStep)
		c.servers[strings.Clone(name)] = s
	}
	return s
}

func (c *Calls) tool(call Call) *tally {
	t := c.tools[toolName{call.Server, call.Tool}]
	if t == nil {
		makeRoom(c.tools, maxTools, func(t *tally) int64 { return t.last })
		t = new(tally)
		c.tools[toolName{strings.Clone(call.Server), strings.Clone(call.Tool)}] = t
	}
	return t
}

// makeRoom deletes what was used least recently if there are limit entries.
func makeRoom[K comparable, V any](all map[K]V, limit int, last func(V) int64) {
	if len(all) < limit {
		return
	}
	var oldest K
	at := int64(math.MaxInt64)
	for name, value := range all {
		if last(value) < at {
			oldest, at = name, last(value)
		}
	}
	delete(all, oldest)
}

// Report is what was counted in a span of time.
type Report struct {
	From    time.Time         `json:"from"`
	Step    float64           `json:"step_secs"`
	Points  []Point           `json:"points"` // the oldest first, one for each step
	Total   Point             `json:"total"`
	Servers map[string]Server `json:"servers"` // of the last hour
	Tools   []Tool            `json:"tools"`   // of the last hour, the most called first
}

// Point is what was counted in one step.
type Point struct {
	Calls  uint32  `json:"calls"`
	Errors uint32  `json:"errors"`
	P50    float64 `json:"p50_ms,omitempty"` // durations are exact to an eighth
	P95    float64 `json:"p95_ms,omitempty"`
	P99    float64 `json:"p99_ms,omitempty"`
}

// Server is the last hour of one server, a point a minute.
type Server struct {
	From   time.Time `json:"from"`
	Step   float64   `json:"step_secs"`
	Points []Point   `json:"points"`
	Total  Point     `json:"total"`
}

// Tool is the last hour of one tool.
type Tool struct {
	Name   string `json:"name"`
	Calls  uint32 `json:"calls"`
	Errors uint32 `json:"errors"`
	Bytes  uint64 `json:"bytes"` // of its results
}

// Report returns what was counted in the last span: an hour in fine steps, more in
// coarse ones, a day at most. Servers and tools are those that who sees, by the names that
// they have for who.
func (c *Calls) Report(span time.Duration, who principal.Principal) Report {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	source := c.hour
	if span > time.Hour {
		source = c.day
	}
	r := Report{Step: source.step.Seconds(), Servers: map[string]Server{}, Tools: []Tool{}}
	r.From, r.Points, r.Total = source.report(now, span)
	visible := c.visible(who)
	for name, s := range c.servers {
		if from, points, total := s.report(now, time.Hour); total.Calls > 0 && visible[name] {
			r.Servers[who.NameOf(name)] = Server{From: from, Step: serverStep.Seconds(), Points: points, Total: total}
		}
	}
	for name, t := range c.tools {
		if sum := t.sum(now); sum.Calls > 0 && visible[name.server] && who.CanSee(name.server, name.tool) {
			sum.Name = who.NameOf(name.server) + "." + name.tool
			r.Tools = append(r.Tools, sum)
		}
	}
	slices.SortFunc(r.Tools, func(a, b Tool) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name)) })
	return r
}

// visible returns the servers that somebody sees. There may be tools of servers that are
// no longer counted. c.mu is held.
func (c *Calls) visible(who principal.Principal) map[string]bool {
	known := map[string]bool{}
	for name := range c.servers {
		known[name] = true
	}
	for name := range c.tools {
		known[name.server] = true
	}
	visible := map[string]bool{}
	for _, name := range who.Visible(slices.Collect(maps.Keys(known))) {
		visible[name] = true
	}
	return visible
}
