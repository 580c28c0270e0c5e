// Command load measures nodes on one Postgres: one to three processes of the real program
// on a real Postgres that commits to disk, called by clients of this process. The loads
// are calls that are relayed to an upstream, jobs that call it three times, chat turns with
// a fake model, and all of them mixed. It also measures what policy, pins and the audit log
// add to a relayed call.
//
//	go run ./bench/load [-for 4s] [-clients 32] [-nodes 1,2,3] [-rounds 2] [-only WORDS] [-program FILE] [-json FILE]
//
// On a small machine clients, upstream, nodes and Postgres share its CPUs, so the rate per
// second depends on the machine; compare the CPU time per operation. Other load on the
// machine only adds to it, so the round counts in which nodes and Postgres took the least.
// -json writes the figures to a file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/bench/proc"
)

func main() {
	var (
		b      = bench{nodes: calls.Counts{1, 2, 3}}
		listen = flag.String("upstream", "", "serve as the upstream here; used by the program itself")
	)
	flag.Var(&b.nodes, "nodes", "numbers of nodes")
	flag.DurationVar(&b.length, "for", 4*time.Second, "how long to measure each row in a round")
	flag.IntVar(&b.clients, "clients", 32, "number of concurrent clients")
	flag.IntVar(&b.rounds, "rounds", 2, "number of rounds; the best counts")
	flag.StringVar(&b.only, "only", "", "measure only loads whose name contains this")
	flag.StringVar(&b.program, "program", "", "measure this build of luanette; by default it is built from this module")
	flag.StringVar(&b.file, "json", "", "write the figures to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *listen != "" {
		err = serveUpstream(ctx, *listen)
	} else {
		err = b.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/load:", err)
		os.Exit(1)
	}
}

type bench struct {
	length          time.Duration
	clients, rounds int
	nodes           calls.Counts
	only            string // part of a load's name
	file, program   string
}

// serveUpstream serves the upstream of the nodes.
func serveUpstream(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: calls.Echo().Handler(), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (b bench) run(ctx context.Context) error {
	f, err := newFleet(ctx, b.program)
	if err != nil {
		return err
	}
	err = b.measure(ctx, f)
	return errors.Join(err, f.close())
}

func (b bench) measure(ctx context.Context, f *fleet) error {
	var all []figure
	print(head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
	for _, n := range b.nodes {
		found, err := b.withNodes(ctx, f, n)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if strings.Contains("checks", b.only) {
		print("")
		checked, err := b.checks(ctx, f)
		if err != nil {
			return err
		}
		all = append(all, checked...)
	}
	if b.file == "" {
		return nil
	}
	return write(b.file, all)
}

// withNodes measures every load on n nodes.
func (b bench) withNodes(ctx context.Context, f *fleet, n int) ([]figure, error) {
	nodes, err := f.start(ctx, n, "")
	if err != nil {
		return nil, err
	}
	defer nodes.stop()
	hash, err := nodes.store(ctx, jobScript)
	if err != nil {
		return nil, err
	}
	var best []figure
	wanted := slices.DeleteFunc(loads(hash), func(l load) bool { return !strings.Contains(l.name, b.only) })
	for round := range b.rounds {
		for i, l := range wanted {
			found, err := b.once(ctx, f, nodes, l)
			if err != nil {
				return nil, fmt.Errorf("%s on %d nodes: %w", l.name, n, err)
			}
			if round == 0 {
				best = append(best, found)
			} else if found.cost() < best[i].cost() {
				best[i] = found
			}
		}
	}
	for _, one := range best {
		print(one.row())
	}
	return best, nil
}

// checks compares a node with all checks on with one with all off.
func (b bench) checks(ctx context.Context, f *fleet) ([]figure, error) {
	sides := map[string]*nodes{}
	for _, side := range []string{"off", "on"} {
		started, err := f.start(ctx, 1, side)
		if err != nil {
			return nil, err
		}
		defer started.stop()
		sides[side] = started
	}
	if err := calls.Approve(ctx, sides["on"].url(0), sides["on"].folder(0), upstreamName); err != nil {
		return nil, err
	}
	best := map[string]figure{}
	for round := range max(3, b.rounds) {
		for _, side := range []string{"off", "on"} {
			found, err := b.once(ctx, f, sides[side], load{"checks " + side + ": a relayed call", relayed})
			if err != nil {
				return nil, err
			}
			if round == 0 || found.NodeCPU < best[side].NodeCPU {
				best[side] = found
			}
		}
	}
	print(head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|", best["off"].row(), best["on"].row(), "",
		fmt.Sprintf("Policy, pins, labels and the audit log add %.0f µs of CPU time of the node to a relayed call, %.2f times the time without them.",
			best["on"].NodeCPU-best["off"].NodeCPU, best["on"].NodeCPU/best["off"].NodeCPU))
	return []figure{best["off"], best["on"]}, nil
}

func print(lines ...string) { fmt.Println(strings.Join(lines, "\n")) }

// figure is one row of the table; CPU times are in microseconds per operation.
type figure struct {
	Load        string
	Nodes       int
	PerSecond   float64
	P50, P99    time.Duration
	NodeCPU     float64 // all nodes
	PostgresCPU float64
	OtherCPU    float64 // clients, upstream and model
	NodeMB      float64 // each
	PostgresMB  float64
	WAL         float64 // bytes per operation
	Rows        float64 // stored
	News        float64 // notifications between nodes
}

const head = "| what | nodes | per second | p50 | p99 | node CPU | Postgres CPU | CPU of clients and upstream | MB per node | MB Postgres | WAL bytes | rows stored | notifications |"

func (f figure) row() string {
	return fmt.Sprintf("| %s | %d | %.0f | %v | %v | %.0f µs | %.0f µs | %.0f µs | %.0f | %.0f | %.0f | %.1f | %.2f |",
		f.Load, f.Nodes, f.PerSecond, f.P50, f.P99, f.NodeCPU, f.PostgresCPU, f.OtherCPU, f.NodeMB, f.PostgresMB, f.WAL, f.Rows, f.News)
}

func (f figure) cost() float64 { return f.NodeCPU + f.PostgresCPU }

func write(file string, all []figure) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// once measures a load for a while, after a warm-up.
func (b bench) once(ctx context.Context, f *fleet, n *nodes, l load) (figure, error) {
	clients := make([]func() error, b.clients)
	for i := range clients {
		var err error
		if clients[i], err = l.prepare(ctx, n.url(i), i); err != nil {
			return figure{}, err
		}
	}
	do := func(i int) error { return clients[i]() }
	if _, err := calls.During(b.length/4, b.clients, do); err != nil {
		return figure{}, err
	}
	news, stop, err := n.countNotifications(ctx)
	if err != nil {
		return figure{}, err
	}
	defer stop()
	before, err := n.reading(ctx, f)
	if err != nil {
		return figure{}, err
	}
	began, heard := time.Now(), news.Load()
	times, err := calls.During(b.length, b.clients, do)
	took, more := time.Since(began), news.Load()-heard
	after, wrong := n.reading(ctx, f)
	if err = errors.Join(err, wrong); err != nil {
		return figure{}, err
	}
	each := func(total float64) float64 { return total / float64(max(1, len(times))) }
	cpu := func(after, before proc.Spent) float64 { return each(float64(after.CPU-before.CPU) / 1e3) }
	return figure{
		Load: l.name, Nodes: len(n.addresses), PerSecond: float64(len(times)) / took.Seconds(),
		P50: calls.Quantile(times, 50), P99: calls.Quantile(times, 99),
		NodeCPU: cpu(after.nodes, before.nodes), PostgresCPU: cpu(after.postgres, before.postgres), OtherCPU: cpu(after.others, before.others),
		NodeMB: float64(after.nodes.Memory) / float64(len(n.addresses)) / 1e6, PostgresMB: float64(after.postgres.Memory) / 1e6,
		WAL: each(after.wal - before.wal), Rows: each(after.rows - before.rows), News: each(float64(more)),
	}, nil
}

// reading is what all processes have spent so far.
type reading struct {
	nodes, postgres, others proc.Spent
	wal, rows               float64
}

// reading waits until what is written later, such as the audit log, has been written.
func (n *nodes) reading(ctx context.Context, f *fleet) (r reading, err error) {
	for before, try := -1.0, 0; before != r.rows && try < 50; try++ {
		before = r.rows
		time.Sleep(500 * time.Millisecond)
		if r.rows, err = n.rows(ctx, f.watch); err != nil {
			return r, err
		}
	}
	for _, cmd := range n.commands {
		s, err := proc.Of(cmd.Process.Pid)
		if err != nil {
			return r, err
		}
		r.nodes.CPU += s.CPU
		r.nodes.Memory += s.Memory
	}
	for _, pid := range []int{os.Getpid(), f.upstream.Process.Pid} {
		s, err := proc.Of(pid)
		if err != nil {
			return r, err
		}
		r.others.CPU += s.CPU
	}
	if r.postgres, err = proc.Tree(f.server); err != nil {
		return r, err
	}
	err = f.watch.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::DOUBLE PRECISION").Scan(&r.wal)
	return r, err
}

// rows counts the rows of all tables.
func (n *nodes) rows(ctx context.Context, conn *pgx.Conn) (sum float64, err error) {
	found, err := conn.Query(ctx, "SELECT format('(SELECT count(*) FROM %I.%I)', schemaname, tablename) FROM pg_tables WHERE schemaname IN ($1, $2)", n.schema, n.schema+"_dbos")
	if err != nil {
		return 0, err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT ("+strings.Join(tables, " + ")+")::DOUBLE PRECISION").Scan(&sum)
	return sum, err
}

// countNotifications counts the notifications between nodes.
func (n *nodes) countNotifications(ctx context.Context) (*atomic.Int64, func(), error) {
	var channel string
	err := n.fleet.watch.QueryRow(ctx, "SELECT substr(query, 8) FROM pg_stat_activity WHERE query LIKE 'LISTEN luanette_%' ORDER BY backend_start DESC LIMIT 1").Scan(&channel)
	if err != nil {
		return nil, nil, fmt.Errorf("find where nodes listen: %w", err)
	}
	conn, err := pgx.Connect(ctx, n.fleet.postgres)
	if err != nil {
		return nil, nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return nil, nil, errors.Join(err, conn.Close(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	count, done := &atomic.Int64{}, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := conn.WaitForNotification(ctx); err == nil {
				count.Add(1)
			}
		}
	}()
	return count, func() {
		cancel()
		<-done
		_ = conn.Close(context.WithoutCancel(ctx)) // it has ended
	}, nil
}
