package main

import (
	"container/heap"
	"math/rand/v2"
)

// sim is a simulation of discrete events: seconds pass from one to the next, and
// the same seed gives the same events.
type sim struct {
	now    float64
	random *rand.Rand
	events events
	count  uint64
}

func newSim(seed uint64) *sim { return &sim{random: rand.New(rand.NewPCG(seed, 1))} }

type event struct {
	at    float64
	order uint64 // of events at the same time the first comes first
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after has something happen in so many seconds.
func (s *sim) after(seconds float64, do func()) {
	s.count++
	heap.Push(&s.events, event{s.now + seconds, s.count, do})
}

// run lets happen what happens until then.
func (s *sim) run(until float64) {
	for len(s.events) > 0 && s.events[0].at <= until {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.now = until
}

// exponential is a time that lasts mean on the average, whatever has passed of it.
func (s *sim) exponential(mean float64) float64 { return s.random.ExpFloat64() * mean }

// arrivals have something happen again and again, so often a second, independent
// of what happened before.
func (s *sim) arrivals(rate float64, do func()) {
	s.after(s.exponential(1/rate), func() {
		do()
		s.arrivals(rate, do)
	})
}

// station has servers and one line before them.
type station struct {
	sim     *sim
	servers int
	busy    int
	line    []visit
	worked  float64 // seconds, of all servers together
}

type visit struct {
	takes float64
	then  func()
}

func (s *sim) station(servers int) *station { return &station{sim: s, servers: servers} }

// serve has a server take its time as soon as one is free.
func (s *station) serve(takes float64, then func()) {
	if s.busy == s.servers {
		s.line = append(s.line, visit{takes, then})
		return
	}
	s.busy++
	s.worked += takes
	s.sim.after(takes, func() {
		s.busy--
		if len(s.line) > 0 {
			next := s.line[0]
			s.line = s.line[1:]
			s.serve(next.takes, next.then)
		}
		then()
	})
}

// use is the share of its time that the station worked.
func (s *station) use() float64 { return s.worked / s.sim.now / float64(s.servers) }

// group serves all who wait at once, as commits share their wait for the disk.
type group struct {
	sim     *sim
	most    int
	serve   func(all []request, then func())
	line    []request
	serving bool
	since   float64
	worked  float64
	groups  int
}

// request is what one who waits wants of a group.
type request struct {
	trips, cpu, bytes float64
	then              func()
}

func (g *group) join(r request) {
	g.line = append(g.line, r)
	if !g.serving {
		g.next()
	}
}

func (g *group) next() {
	n := min(len(g.line), g.most)
	if g.serving = n > 0; !g.serving {
		return
	}
	all := g.line[:n:n]
	g.line = g.line[n:]
	g.since, g.groups = g.sim.now, g.groups+1
	g.serve(all, func() {
		g.worked += g.sim.now - g.since
		for _, r := range all {
			r.then()
		}
		g.next()
	})
}

func (g *group) use() float64 { return g.worked / g.sim.now }
