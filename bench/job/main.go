// Command job measures what durable jobs cost on SQLite and, if it is installed, on a
// Postgres server of its own, with every commit on disk: jobs from being submitted until
// their end is stored, and what the journal adds to one effect. The same run measures DBOS
// alone, a bare commit, and a sync of the disk. Opening and closing the database is not
// counted. CPU times are those of this process and of the Postgres server.
//
//	go run ./bench/job [-jobs 2000] [-effects 2000] [-at-once 64] [-rounds 3] [-only WORDS] [-profile FILE]
//
// With -only it measures the rows whose name contains the words; -profile writes a CPU
// profile of them.
//
// Other load on the machine only adds to the times, so the best of several rounds counts.
// Compare ratios rather than times.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func main() {
	var b bench
	flag.IntVar(&b.jobs, "jobs", 2000, "jobs per round")
	flag.IntVar(&b.effects, "effects", 2000, "effects per round")
	flag.IntVar(&b.atOnce, "at-once", 64, "number of concurrent jobs")
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds; the best counts")
	flag.StringVar(&b.only, "only", "", "measure only rows whose name contains this")
	flag.StringVar(&b.profile, "profile", "", "write a CPU profile of the measured parts on Postgres to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.everywhere(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench/job:", err)
		os.Exit(1)
	}
}

type bench struct {
	jobs, effects, atOnce, rounds int
	only, profile                 string
	postgres                      string           // URL; "" means SQLite
	server                        int              // its process
	sqlite                        map[string]spent // results on SQLite, by subject
}

// everywhere measures on SQLite and, if it is installed, on Postgres.
func (b bench) everywhere(ctx context.Context) error {
	b.sqlite = map[string]spent{}
	if err := b.report(ctx); err != nil {
		return err
	}
	server, stop, err := dbtest.StartDurable()
	if err != nil {
		fmt.Println("\n" + err.Error())
		return nil //nolint:nilerr // half of the table is better than none
	}
	b.postgres = server
	if b.server, err = proc.Postgres(ctx, server); err != nil {
		return errors.Join(err, stop())
	}
	fmt.Println("\nThe same on Postgres:")
	fmt.Println()
	return errors.Join(b.profiled(func() error { return b.report(ctx) }), stop())
}

// profiled calls f and, with -profile, writes a CPU profile of it.
func (b bench) profiled(f func() error) error {
	if b.profile == "" {
		return f()
	}
	file, err := os.Create(b.profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// subject is a row: run does something that many times in a new folder, and calls
// round.time for the part that counts.
type subject struct {
	name  string
	times int
	run   func(ctx context.Context, folder string, r round) error
}

// round is one measurement: what is done that many times, without the setup.
type round struct {
	times int
	timed func(func() error) error
}

// spent is the time of one execution.
type spent struct{ wall, cpu, server time.Duration }

func (b bench) report(ctx context.Context) error {
	head("jobs, enqueue to complete", "per second", "CPU each", "Postgres's", "of DBOS alone", "of SQLite")
	err := b.rows(ctx, func(first, s spent) string { return fmt.Sprintf("%.2f", float64(first.wall)/float64(s.wall)) }, perSecond,
		subject{"DBOS alone: an empty workflow", b.jobs, b.dbosRuns},
		subject{"our engine over it: an empty run", b.jobs, b.engineRuns},
		subject{"a job that does nothing", b.jobs, b.emptyJobs},
		subject{"a job that is an empty Lua script", b.jobs, b.luaJobs},
	)
	if err != nil {
		return err
	}
	fmt.Println()
	head("one effect of a job", "time", "CPU each", "Postgres's", "of one commit", "of SQLite")
	return b.rows(ctx, func(first, s spent) string { return fmt.Sprintf("%.2f", float64(s.wall)/float64(first.wall)) }, perTime,
		subject{"one row inserted and committed", b.effects, b.commits},
		subject{"the disk: one page written and synced", b.effects, syncs},
		subject{"DBOS alone: one step", b.effects, b.dbosSteps},
		subject{"journal of a read", b.effects, b.effectsOf("read")},
		subject{"journal of a call that may be repeated", b.effects, b.effectsOf("repeat")},
		subject{"journal of a call that may not", b.effects, b.effectsOf("write")},
	)
}

// rows measures subjects and prints each with its ratio to the first.
func (b bench) rows(ctx context.Context, ratio func(first, s spent) string, figure func(spent) string, subjects ...subject) error {
	var first spent
	for i, s := range subjects {
		if !strings.Contains(s.name, b.only) {
			continue
		}
		best, err := b.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if i == 0 {
			first = best
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", s.name, figure(best), micros(best.cpu), micros(best.server), ratio(first, best), b.beside(s.name, best, ratio))
	}
	return nil
}

// beside returns the ratio to SQLite.
func (b bench) beside(name string, s spent, ratio func(first, s spent) string) string {
	if b.postgres == "" {
		b.sqlite[name] = s
		return "1.00"
	}
	return ratio(b.sqlite[name], s)
}

// measure returns the best round.
func (b bench) measure(ctx context.Context, s subject) (best spent, err error) {
	for i := range b.rounds {
		folder, err := os.MkdirTemp("", "bench-job")
		if err != nil {
			return best, err
		}
		var took spent
		err = s.run(ctx, folder, round{s.times, func(f func() error) error {
			server, began, busy := b.serverTime(), time.Now(), proc.Self()
			err := f()
			n := time.Duration(s.times)
			took = spent{time.Since(began) / n, (proc.Self() - busy) / n, (b.serverTime() - server) / n}
			return err
		}})
		_ = os.RemoveAll(folder)
		if err != nil {
			return best, err
		}
		if i == 0 || took.wall < best.wall {
			best = took
		}
	}
	return best, nil
}

// serverTime is the CPU time of Postgres so far; 0 on SQLite.
func (b bench) serverTime() time.Duration {
	if b.server == 0 {
		return 0
	}
	s, _ := proc.Tree(b.server) // it runs as long as we do
	return s.CPU
}

func head(columns ...string) {
	fmt.Printf("| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

func micros(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

func perTime(s spent) string { return micros(s.wall) }

func perSecond(s spent) string { return fmt.Sprintf("%.0f", float64(time.Second)/float64(s.wall)) }

// commits stores rows one by one, each on disk before the next: the lower bound for
// anything durable.
func (b bench) commits(ctx context.Context, folder string, r round) error {
	return b.store(ctx, folder, func(d *db.DB) error {
		write := func(statement string, args ...any) error {
			return d.Exec(ctx, statement, args...)
		}
		if err := write("CREATE TABLE bare (id BIGINT PRIMARY KEY, data BYTEA)"); err != nil {
			return err
		}
		row := make([]byte, 100)
		return r.timed(func() error {
			for i := range r.times {
				if err := write("INSERT INTO bare (id, data) VALUES ($1, $2)", i, row); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// syncs writes and syncs pages to the disk.
func syncs(_ context.Context, folder string, r round) (err error) {
	f, err := os.Create(filepath.Join(folder, "page"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page := make([]byte, 4096)
	return r.timed(func() error {
		for range r.times {
			if _, err := f.Write(page); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
}
