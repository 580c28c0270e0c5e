package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // lets DBOS recognize SQLite's errors
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"
)

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
