package main

import "testing"

var sample = work{name: "sample", nodeCPU: 1e-3, postgresCPU: 0.5e-3, wal: 2000, trips: 0.5, notices: 0.1}

func small(nodes int) plant {
	p := assumed()
	p.nodes, p.cores, p.postgresCores, p.hot, p.blobs = nodes, 2, 4, 0, 0
	return p
}

// Below the computed limit all arriving operations are done, and above it as many as the
// limit.
func TestSimulationMeetsItsLimit(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 4, 12} {
		p := small(nodes)
		most := p.limits(sample)[0]
		below := p.simulate(1, sample, 0.7*most.rate, 4)
		near(t, "done below the limit", below.done, 0.7*most.rate, 0.05)
		above := p.simulate(1, sample, 1.5*most.rate, 4)
		near(t, "done above the limit of "+most.what, above.done, most.rate, 0.15)
		near(t, "Little's law", below.inside, 0.7*most.rate*below.meanTime, 0.05)
	}
}

func TestNodesThenPostgresAreTheLimit(t *testing.T) {
	t.Parallel()
	if got := small(1).limits(sample)[0].what; got != "nodes' CPU" {
		t.Errorf("one node is limited by %s", got)
	}
	if got := small(40).limits(sample)[0].what; got != "Postgres's CPU" {
		t.Errorf("40 nodes are limited by %s", got)
	}
}

// Partitions help as far as the largest organization allows.
func TestPartitionsHelpUntilOneIsTooLarge(t *testing.T) {
	t.Parallel()
	rate := func(partitions int, largest float64) float64 {
		p := small(16 * partitions)
		p.partitions, p.largest = partitions, largest
		return p.limits(sample)[0].rate
	}
	near(t, "4 partitions", rate(4, 0.01), 4*rate(1, 0.01), 0.001)
	near(t, "8 partitions, of which one has half", rate(8, 0.5), 2*rate(1, 0.5), 0.001)
}

// Work that moves off Postgres raises the limit of Postgres, and no other.
func TestReplicasAndObjectStorageRelievePostgres(t *testing.T) {
	t.Parallel()
	find := func(p plant, what string) float64 {
		for _, l := range p.limits(sample) {
			if l.what == what {
				return l.rate
			}
		}
		return 0
	}
	p := small(8)
	p.blobs = 100_000
	q := p
	q.objects = true
	if before, after := find(p, "the WAL disk"), find(q, "the WAL disk"); after < 10*before {
		t.Errorf("the WAL disk allows %g with contents and %g without", before, after)
	}
	q, p.blobs = small(8), 0
	q.replicas, q.reads = 1, 0.5
	p.notice, q.notice = 0, 0
	near(t, "Postgres with replicas", find(q, "Postgres's CPU"), 2*find(p, "Postgres's CPU"), 0.001)
	near(t, "nodes", find(q, "nodes' CPU"), find(p, "nodes' CPU"), 0.001)
}
