package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/bench/proc"
)

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
