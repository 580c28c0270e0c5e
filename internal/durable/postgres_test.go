package durable_test

import (
	"context"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/db/dbtest"
	"github.com/luanette/luanette/internal/durable"
)

// TestOnPostgres is every test that has a database, on the other one.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestRunsGoOn, TestCancelEndsTheContext, TestManyRunsAtOnce,
	)
}

// Nodes that start together on an empty database make its tables once.
func TestEnginesOpenedTogether(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	var all sync.WaitGroup
	for range 4 {
		d := dbtest.Open(t, url)
		all.Go(func() {
			e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(context.Context, *durable.Run) error { return nil }, durable.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			close(t, e)
		})
	}
	all.Wait()
}
