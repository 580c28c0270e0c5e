package main

import (
	"container/heap"
	"math/rand/v2"
)

// sim is a simulation of discrete events: time advances from one event to the next, and
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
	order uint64 // order of events at the same time
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

// after calls do in that many seconds.
func (s *sim) after(seconds float64, do func()) {
	s.count++
	heap.Push(&s.events, event{s.now + seconds, s.count, do})
}

// run simulates all events until that time.
func (s *sim) run(until float64) {
	for len(s.events) > 0 && s.events[0].at <= until {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.now = until
}

// exponential returns an exponentially distributed time with that mean.
func (s *sim) exponential(mean float64) float64 { return s.random.ExpFloat64() * mean }

// arrivals calls do at random times, rate times per second on average.
func (s *sim) arrivals(rate float64, do func()) {
	s.after(s.exponential(1/rate), func() {
		do()
		s.arrivals(rate, do)
	})
}

// station is a number of servers with one queue.
type station struct {
	sim     *sim
	servers int
	busy    int
	queue   []job
	worked  float64 // seconds, of all servers together
}

type job struct {
	takes float64
	then  func()
}

func (s *sim) station(servers int) *station { return &station{sim: s, servers: servers} }

// serve occupies a server for that time as soon as one is free, and then calls then.
func (s *station) serve(takes float64, then func()) {
	if s.busy == s.servers {
		s.queue = append(s.queue, job{takes, then})
		return
	}
	s.busy++
	s.worked += takes
	s.sim.after(takes, func() {
		s.busy--
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			s.serve(next.takes, next.then)
		}
		then()
	})
}

// use is the share of the time that the station was busy.
func (s *station) use() float64 { return s.worked / s.sim.now / float64(s.servers) }

// group serves all waiting requests at once, as commits share their wait for the disk.
type group struct {
	sim     *sim
	most    int
	serve   func(all []request, then func())
	queue   []request
	serving bool
	since   float64
	worked  float64
	groups  int
}

// request is one request to a group.
type request struct {
	trips, cpu, bytes float64
	then              func()
}

func (g *group) join(r request) {
	g.queue = append(g.queue, r)
	if !g.serving {
		g.next()
	}
}

func (g *group) next() {
	n := min(len(g.queue), g.most)
	if g.serving = n > 0; !g.serving {
		return
	}
	all := g.queue[:n:n]
	g.queue = g.queue[n:]
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
