package durable_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// BenchmarkDBOSAlone is what the engine below does by itself, on a pool of its own
// with the same promise: every commit is on disk.
func BenchmarkDBOSAlone(b *testing.B) {
	path := filepath.Join(b.TempDir(), "dbos.db")
	pool, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1")
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(8)
	alone, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName: "alone", SQLiteSystemDB: pool, ApplicationVersion: "1", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	nothing := func(dbos.Context, string) (string, error) { return "", nil }
	dbos.RegisterWorkflow(alone, nothing)
	if err := dbos.Launch(alone); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := dbos.Shutdown(alone, 10*time.Second); err != nil {
			b.Error(err)
		}
	}()
	var all sync.WaitGroup
	slots := make(chan struct{}, 64)
	b.ResetTimer()
	for i := range b.N {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			handle, err := dbos.RunWorkflow(alone, nothing, "", dbos.WithWorkflowID(fmt.Sprint(i)))
			if err == nil {
				_, err = handle.GetResult()
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}
