package main

import (
	"math"
	"slices"
)

// work is what one operation of clients costs, as measured by bench/load.
type work struct {
	name        string
	nodeCPU     float64 // seconds
	postgresCPU float64
	wal         float64 // bytes
	trips       float64 // round trips in its node's write queue
	notices     float64 // notifications to all nodes
	later       bool    // the answer does not wait for the database
}

// plant is the machines and their load. What is not measured is assumed, and printed.
type plant struct {
	nodes, cores   int     // nodes, and processors of each
	postgresCores  int     // of each Postgres
	partitions     int     // Postgres servers, each with its share of nodes and organizations
	largest        float64 // share of the largest organization
	replicas       int     // of each Postgres, which take its reads
	reads          float64 // share of Postgres's processor time that reading takes
	trip           float64 // seconds to Postgres and back
	sync           float64 // seconds for a commit to be on disk
	disk           float64 // bytes a second of its log
	notice         float64 // seconds of processor time of each node that receives a notification, and of Postgres for each
	hot            float64 // share of operations that change one and the same row
	blobs          float64 // bytes of contents stored with each operation
	objects        bool    // contents go to object storage, not to Postgres
	connections    int     // that a Postgres accepts
	perNode        int     // connections of a node
	fullPages      float64 // bytes of log per byte of contents
	postgresPerMiB float64 // seconds of its processor for a MiB of contents
}

// share is the part of all work that the busiest partition has. Organizations are spread
// evenly, but the largest cannot be divided.
func (p plant) share() float64 { return max(1/float64(p.partitions), p.largest) }

// stored adds the cost of contents to w, unless they are outside of Postgres.
func (p plant) stored(w work) work {
	if !p.objects {
		w.wal += p.blobs * p.fullPages
		w.postgresCPU += p.blobs / (1 << 20) * p.postgresPerMiB
	}
	return w
}

// limit is the most operations per second that one part of the plant allows.
type limit struct {
	what string
	rate float64
}

// limits computes the limit of each part if it were always busy, the lowest first, which
// is the limit of the whole.
func (p plant) limits(w work) []limit {
	w = p.stored(w)
	nodes := float64(p.nodes) / float64(p.partitions)
	busiest := p.share()
	all := []limit{
		{"nodes' CPU", nodes * float64(p.cores) / (w.nodeCPU + w.notices*nodes*p.notice)},
		{"Postgres's CPU", float64(p.postgresCores) / (p.primary(w) + w.notices*nodes*p.notice)},
		{"the WAL disk", p.disk / w.wal},
		{"a node's write queue", nodes / (w.trips*p.trip + p.sync/maxGroup + w.postgresCPU/2)},
	}
	if p.hot > 0 {
		all = append(all, limit{"one hot row", 1 / (p.hot * (p.sync + 3*p.trip))})
	}
	for i := range all {
		all[i].rate /= busiest
	}
	slices.SortFunc(all, func(a, b limit) int { return int(math.Copysign(1, a.rate-b.rate)) })
	return all
}

// primary is the processor time for w of the primary Postgres, without reads that replicas
// serve.
func (p plant) primary(w work) float64 {
	if p.replicas > 0 {
		return w.postgresCPU * (1 - p.reads)
	}
	return w.postgresCPU
}

// maxNodes is how many nodes get the connections they need.
func (p plant) maxNodes() int { return p.connections / p.perNode * p.partitions }

const maxGroup = 60 // Writes that share a transaction

// outcome is the result of a simulation.
type outcome struct {
	done             float64 // per second
	p50, p99         float64 // seconds
	nodes, postgres  float64 // share of the time they were busy
	disk, writes     float64
	inside, meanTime float64 // operations in progress and their duration, on average
}

// simulate lets operations arrive at the busiest partition for that many seconds.
func (p plant) simulate(seed uint64, w work, rate, seconds float64) outcome {
	w = p.stored(w)
	s := newSim(seed)
	c := &cluster{plant: p, sim: s, work: w, postgres: s.station(p.postgresCores), hot: s.station(1)}
	c.log = &group{sim: s, most: math.MaxInt, serve: c.flush}
	for range max(1, p.nodes/p.partitions) {
		n := &member{processors: s.station(p.cores)}
		n.writes = &group{sim: s, most: maxGroup, serve: c.transact}
		c.members = append(c.members, n)
	}
	next := 0
	s.arrivals(rate*p.share(), func() {
		next++
		c.begin(c.members[next%len(c.members)])
	})
	s.run(seconds)
	return c.outcome(seconds)
}

// cluster is a running simulation.
type cluster struct {
	plant
	sim      *sim
	work     work
	postgres *station
	hot      *station
	log      *group
	members  []*member
	times    []float64
	inside   int
	area     float64 // under the curve of inside
	moved    float64 // when inside last changed
}

type member struct {
	processors *station
	writes     *group
}

// begin starts an operation at a node.
func (c *cluster) begin(n *member) {
	began := c.sim.now
	c.move(1)
	end := func() {
		c.move(-1)
		c.times = append(c.times, c.sim.now-began)
	}
	n.processors.serve(c.sim.exponential(c.work.nodeCPU), func() {
		write := request{trips: c.work.trips, cpu: c.sim.exponential(c.primary(c.work)), bytes: c.work.wal, then: func() {
			c.notify()
			if !c.work.later {
				end()
			}
		}}
		if c.work.later {
			end()
		}
		if c.plant.hot > 0 && c.sim.random.Float64() < c.plant.hot {
			c.hot.serve(c.sync+3*c.trip, func() { n.writes.join(write) })
			return
		}
		n.writes.join(write)
	})
}

// transact is a transaction that several Writes share. Half of Postgres's work is done for
// other connections, in parallel.
func (c *cluster) transact(all []request, then func()) {
	var trips, cpu, bytes float64
	for _, r := range all {
		trips, cpu, bytes = trips+r.trips, cpu+r.cpu, bytes+r.bytes
	}
	c.postgres.serve(cpu/2, func() {})
	c.sim.after(trips*c.trip, func() {
		c.postgres.serve(cpu/2, func() { c.log.join(request{bytes: bytes, then: then}) })
	})
}

// flush is a commit that transactions of all nodes share.
func (c *cluster) flush(all []request, then func()) {
	takes := c.sync
	for _, r := range all {
		takes += r.bytes / c.disk
	}
	c.sim.after(takes, then)
}

// notify notifies all nodes, which costs each of them and, for each, Postgres.
func (c *cluster) notify() {
	if c.work.notices == 0 {
		return
	}
	cost := c.work.notices * c.notice
	for _, n := range c.members {
		c.postgres.serve(cost, func() { n.processors.serve(cost, func() {}) })
	}
}

func (c *cluster) move(by int) {
	c.area += float64(c.inside) * (c.sim.now - c.moved)
	c.moved, c.inside = c.sim.now, c.inside+by
}

func (c *cluster) outcome(seconds float64) (o outcome) {
	c.move(0)
	for _, t := range c.times {
		o.meanTime += t / float64(len(c.times))
	}
	slices.Sort(c.times)
	at := func(q float64) float64 { return c.times[int(q*float64(len(c.times)-1))] }
	if len(c.times) > 0 {
		o.p50, o.p99 = at(0.5), at(0.99)
	}
	for _, n := range c.members {
		o.nodes += n.processors.use() / float64(len(c.members))
		o.writes = max(o.writes, n.writes.use())
	}
	o.done, o.inside = float64(len(c.times))/seconds/c.share(), c.area/seconds
	o.postgres, o.disk = c.postgres.use(), c.log.use()
	return o
}
