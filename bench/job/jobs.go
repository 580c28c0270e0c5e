package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // lets DBOS recognize SQLite's errors
	"github.com/jackc/pgx/v5/pgxpool"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	_ "modernc.org/sqlite"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// atOnce calls do that many times, at most limit at once.
func atOnce(limit, times int, do func(i int) error) error {
	var all sync.WaitGroup
	slots, failed := make(chan struct{}, limit), make(chan error, times)
	for i := range times {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// store opens a database for f.
func (b bench) store(ctx context.Context, folder string, f func(*db.DB) error) error {
	url := "sqlite:" + filepath.Join(folder, "job.db")
	if b.postgres != "" {
		url = b.postgres + "&search_path=" + schema(folder)
	}
	d, err := db.Open(ctx, url, db.Options{})
	if err != nil {
		return err
	}
	return errors.Join(f(d), d.Close())
}

// schema is the schema of a round's tables on Postgres.
func schema(folder string) string {
	return "b_" + strings.ReplaceAll(filepath.Base(folder), "-", "_")
}

// engineRuns runs empty functions with our engine.
func (b bench) engineRuns(ctx context.Context, folder string, r round) error {
	return b.store(ctx, folder, func(d *db.DB) error {
		var all sync.WaitGroup
		all.Add(r.times)
		e, err := durable.Open(ctx, d, func(context.Context, *durable.Run) error { all.Done(); return nil }, durable.Options{})
		if err != nil {
			return err
		}
		if err := e.Launch(); err != nil {
			return err
		}
		err = r.timed(func() error {
			err := atOnce(b.atOnce, r.times, func(i int) error { return e.Start(fmt.Sprint(i)) })
			if err == nil {
				all.Wait()
			}
			return err
		})
		return errors.Join(err, e.Close())
	})
}

// runner is a function as a job.Runner.
type runner func(ctx context.Context, task job.Task) (job.Outcome, error)

func (r runner) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) { return r(ctx, task) }

// runJobs runs jobs with a runner, from being submitted until their end is stored.
func (b bench) runJobs(ctx context.Context, folder, source string, r round, does job.Runner) error {
	return b.store(ctx, folder, func(d *db.DB) error {
		q, err := job.Open(ctx, d, does, job.Options{Workers: b.atOnce, KeepComplete: time.Hour})
		if err != nil {
			return err
		}
		err = r.timed(func() error {
			return atOnce(b.atOnce, r.times, func(int) error { return runJob(ctx, q, source) })
		})
		return errors.Join(err, q.Close())
	})
}

func runJob(ctx context.Context, q *job.Queue, source string) error {
	j, err := q.Submit(ctx, job.Spec{Source: source})
	if err != nil {
		return err
	}
	done, _, err := q.Poll(ctx, []string{j.ID}, time.Minute, true)
	if err == nil && (len(done) != 1 || done[0].State != job.Complete) {
		err = fmt.Errorf("job %s did not complete: %+v", j.ID, done)
	}
	return err
}

func (b bench) emptyJobs(ctx context.Context, folder string, r round) error {
	return b.runJobs(ctx, folder, "empty", r, runner(func(context.Context, job.Task) (job.Outcome, error) { return job.Outcome{}, nil }))
}

func (b bench) luaJobs(ctx context.Context, folder string, r round) error {
	scripts := script.NewRunner(script.Options{
		Tools: catalog.New(catalog.Options{}), Events: event.New(event.BusOptions{}), Log: slog.New(slog.DiscardHandler), Clock: clock.Real(), TempDir: folder,
		Tracer: tracenoop.NewTracerProvider().Tracer(""), Meter: metricnoop.NewMeterProvider().Meter(""),
	})
	return b.runJobs(ctx, folder, "function main() end", r, runner(func(ctx context.Context, task job.Task) (job.Outcome, error) {
		outcome, err := scripts.Run(ctx, script.Request{Source: task.Source, Params: task.Params, Main: true, Handler: task.Handler, Watch: task.Watch})
		return job.Outcome{Result: outcome.Result, Output: outcome.Output}, err
	}))
}

// effectsOf runs one job with that many effects of a kind, one after the other, which do
// nothing.
func (b bench) effectsOf(kind string) func(context.Context, string, round) error {
	kinds := map[string]host.Kind{"read": host.Read, "repeat": host.Idempotent, "write": host.Write}
	return func(ctx context.Context, folder string, r round) error {
		return b.runJobs(ctx, folder, "effects", round{1, r.timed}, runner(func(ctx context.Context, task job.Task) (job.Outcome, error) {
			for i := range r.times {
				e := host.Effect{Seq: int64(i) + 1, Name: "bench." + kind, Kind: kinds[kind], Args: []host.Value{"x"}}
				_, err := task.Handler.Handle(ctx, e, func(context.Context) ([]host.Value, error) { return []host.Value{"y"}, nil })
				if err != nil {
					return job.Outcome{}, err
				}
			}
			return job.Outcome{}, nil
		}))
	}
}

// alone runs f with DBOS in its usual setup, except that every commit is on disk as with
// us. steps is the number of steps of its workflow.
func (b bench) alone(ctx context.Context, folder string, steps int, f func(dbos.Context, dbos.Workflow[string, string]) error) (err error) {
	config := dbos.Config{AppName: "alone", ApplicationVersion: "1", Logger: slog.New(slog.DiscardHandler)}
	if b.postgres != "" {
		config.DatabaseSchema = schema(folder)
		config.SystemDBPool, err = pgxpool.New(ctx, b.postgres)
	} else if config.SQLiteSystemDB, err = sql.Open("sqlite", "file:"+filepath.Join(folder, "dbos.db")+
		"?_txlock=immediate&_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1"); err == nil {
		config.SQLiteSystemDB.SetMaxOpenConns(8)
		defer func() { err = errors.Join(err, config.SQLiteSystemDB.Close()) }()
	}
	if err != nil {
		return err
	}
	inner, err := dbos.NewContext(ctx, config)
	if err != nil {
		return err
	}
	workflow := func(c dbos.Context, _ string) (string, error) {
		for range steps {
			if _, err := dbos.RunAsStep(c, func(context.Context) (string, error) { return "done", nil }); err != nil {
				return "", err
			}
		}
		return "", nil
	}
	dbos.RegisterWorkflow(inner, workflow)
	if err := dbos.Launch(inner); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dbos.Shutdown(inner, 10*time.Second)) }()
	return f(inner, workflow)
}

// dbosRuns runs workflows that do nothing.
func (b bench) dbosRuns(ctx context.Context, folder string, r round) error {
	return b.alone(ctx, folder, 0, func(inner dbos.Context, workflow dbos.Workflow[string, string]) error {
		return r.timed(func() error {
			return atOnce(b.atOnce, r.times, func(i int) error { return runWorkflow(inner, workflow, i) })
		})
	})
}

// dbosSteps runs the steps of one workflow.
func (b bench) dbosSteps(ctx context.Context, folder string, r round) error {
	return b.alone(ctx, folder, r.times, func(inner dbos.Context, workflow dbos.Workflow[string, string]) error {
		return r.timed(func() error { return runWorkflow(inner, workflow, 0) })
	})
}

func runWorkflow(inner dbos.Context, workflow dbos.Workflow[string, string], i int) error {
	handle, err := dbos.RunWorkflow(inner, workflow, "", dbos.WithWorkflowID(fmt.Sprint(i)))
	if err == nil {
		_, err = handle.GetResult()
	}
	return err
}
