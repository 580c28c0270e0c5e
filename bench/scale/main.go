// Command scale computes what bench/load cannot measure on one machine: how many nodes one
// Postgres can serve, what limits them first, and what partitions by organization, read
// replicas and object storage for contents would change. It simulates discrete events with
// a seed, from figures that bench/load measured (-json); the speed of the machine does not
// matter. What was not measured is assumed, and printed.
//
//	go run ./bench/scale [-figures FILE] [-load WORDS] [-seed 1] [-arrivals 20000]
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

//go:embed figures.json
var measured []byte

func main() {
	var (
		file  = flag.String("figures", "", "file that bench/load -json wrote; by default the figures of docs/scale.md")
		words = flag.String("load", "mixed", "part of the name of the load")
		seed  = flag.Uint64("seed", 1, "seed of the random numbers")
		many  = flag.Float64("arrivals", 20_000, "number of arriving operations at the busiest partition, for each row")
	)
	flag.Parse()
	if err := run(*file, *words, *seed, *many); err != nil {
		fmt.Fprintln(os.Stderr, "bench/scale:", err)
		os.Exit(1)
	}
}

func run(file, words string, seed uint64, many float64) error {
	text := measured
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	w, err := workOf(text, words)
	if err != nil {
		return err
	}
	fmt.Printf("One operation of %q takes %.0f µs of CPU time of a node and %.0f µs of Postgres, %.0f bytes of WAL, %.1f round trips in the node's write queue, %.2f notifications to all nodes.\n",
		w.name, w.nodeCPU*1e6, w.postgresCPU*1e6, w.wal, w.trips, w.notices)
	fmt.Println(assumed().assumptions())
	fmt.Println()
	growth(w, seed, many)
	fmt.Println()
	ways(w, seed, many)
	return nil
}

// figure is the part of a figure of bench/load that is used; times are in microseconds.
type figure struct {
	Load                                  string
	Nodes                                 int
	NodeCPU, PostgresCPU, WAL, Rows, News float64
}

// workOf returns the load of that name on the fewest nodes. Each stored row counts as a
// round trip in the write queue, although rows of the journal do not pass it, so the
// result is an upper bound.
func workOf(text []byte, words string) (work, error) {
	var all []figure
	if err := json.Unmarshal(text, &all); err != nil {
		return work{}, err
	}
	for _, f := range all {
		if strings.Contains(f.Load, words) && !strings.Contains(f.Load, "checks") {
			return work{
				name: f.Load, nodeCPU: f.NodeCPU / 1e6, postgresCPU: f.PostgresCPU / 1e6, wal: f.WAL, trips: f.Rows, notices: f.News,
				later: strings.Contains(f.Load, "relayed"),
			}, nil
		}
	}
	return work{}, fmt.Errorf("no load named %q was measured", words)
}

// assumed returns a plant of ordinary machines.
func assumed() plant {
	return plant{
		nodes: 1, cores: 4, postgresCores: 16, partitions: 1, largest: 0.05, reads: 0.3,
		trip: 0.3e-3, sync: 1e-3, disk: 200e6, notice: 20e-6, hot: 0.001,
		blobs: 2000, fullPages: 2, postgresPerMiB: 10e-3, connections: 500, perNode: 16,
	}
}

func (p plant) assumptions() string {
	return fmt.Sprintf("Assumed: nodes with %d CPUs, a Postgres with %d; %.1f ms round trip, %.1f ms for a commit to its disk, which writes %.0f MB of WAL a second; "+
		"%.0f µs for a node to receive a notification and for Postgres to send it; %.1f%% of operations change the same row; %.0f bytes of contents per operation; "+
		"%.0f%% of Postgres's time is spent on reads that may be slightly old; the largest organization has %.0f%% of the work; %d connections, %d per node.",
		p.cores, p.postgresCores, p.trip*1e3, p.sync*1e3, p.disk/1e6, p.notice*1e6, p.hot*100, p.blobs, p.reads*100, p.largest*100, p.connections, p.perNode)
}

// growth prints one Postgres with more and more nodes.
func growth(w work, seed uint64, many float64) {
	fmt.Println("| nodes | throughput per second | limited by | next | at 80 %: p50 | p99 | nodes busy | Postgres busy | WAL busy | write queue busy | connections |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, nodes := range []int{1, 2, 3, 5, 8, 12, 16, 24, 32, 64} {
		p := assumed()
		p.nodes = nodes
		limits, tooMany := p.limits(w), ""
		if nodes > p.maxNodes() {
			tooMany = ": too many"
		}
		o := p.simulate(seed, w, 0.8*limits[0].rate, many/(0.8*limits[0].rate*p.share()))
		fmt.Printf("| %d | %.0f | %s | %s at %.0f | %s | %s | %.0f%% | %.0f%% | %.0f%% | %.0f%% | %d of %d%s |\n", nodes, limits[0].rate, limits[0].what, limits[1].what, limits[1].rate,
			millis(o.p50), millis(o.p99), o.nodes*100, o.postgres*100, o.disk*100, o.writes*100, nodes*p.perNode, p.connections, tooMany)
	}
}

// ways prints what helps beyond that.
func ways(w work, seed uint64, many float64) {
	fmt.Println("| 24 nodes per Postgres, and | throughput per second | factor | limited by | at 80 %: p99 |")
	fmt.Println("|---|---|---|---|---|")
	first := 0.0
	for _, way := range []struct {
		name   string
		change func(*plant)
	}{
		{"nothing else", func(*plant) {}},
		{"no hot row", func(p *plant) { p.hot = 0 }},
		{"read replicas", func(p *plant) { p.replicas = 2 }},
		{"contents in object storage", func(p *plant) { p.objects = true }},
		{"ten times the contents", func(p *plant) { p.blobs *= 10 }},
		{"ten times the contents, in object storage", func(p *plant) { p.blobs *= 10; p.objects = true }},
		{"4 partitions by organization", func(p *plant) { p.divide(4) }},
		{"16 partitions", func(p *plant) { p.divide(16) }},
		{"64 partitions", func(p *plant) { p.divide(64) }},
		{"64 partitions, and the largest organization has 1 %", func(p *plant) { p.divide(64); p.largest = 0.01 }},
		{"16 partitions, replicas, object storage, no hot row", func(p *plant) { p.divide(16); p.replicas, p.objects, p.hot = 2, true, 0 }},
	} {
		p := assumed()
		p.nodes = 24
		way.change(&p)
		most := p.limits(w)[0]
		if first == 0 {
			first = most.rate
		}
		o := p.simulate(seed, w, 0.8*most.rate, many/(0.8*most.rate*p.share()))
		fmt.Printf("| %s | %.0f | %.1f | %s | %s |\n", way.name, most.rate, most.rate/first, most.what, millis(o.p99))
	}
}

// divide distributes the organizations over several Postgres servers, each with as many
// nodes as there were. A hot row belongs to one organization.
func (p *plant) divide(partitions int) { p.nodes, p.partitions = p.nodes*partitions, partitions }

func millis(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1e3) }
