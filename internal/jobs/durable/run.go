package durable

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/base/fault"
)

// Run is one run under way. Its records are a list: what was recorded before the
// process died comes first, and Record adds to it.
type Run struct {
	ID string

	engine *Engine
	inner  dbos.Context // DBOS keeps a run's place in it

	mu      sync.Mutex // DBOS numbers steps without a lock
	past    int        // records read by Past and not yet passed by
	next    int        // the number of the next record, where nodes share the database
	delayed atomic.Bool
}

// Past is what earlier processes recorded. It is called once, before the first
// Record.
func (r *Run) Past() ([][]byte, error) {
	records, err := r.engine.Records(r.ID)
	r.past, r.next = len(records), len(records)
	return records, err
}

// Record adds to the list and returns when it is on disk. Calls are served one
// after the other.
func (r *Run) Record(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine.guests.Postgres != nil {
		return r.recordShared(data)
	}
	for ; r.past > 0; r.past-- { // steps are numbered from the first on, the old ones too
		if _, err := r.step(nil); err != nil {
			return err
		}
	}
	_, err := r.step(data)
	return err
}

// step is the next step of the workflow: an old one is answered as it was
// recorded, a new one records data. As a transaction of its own on DBOS's database
// a step is looked for and recorded in one; as a plain one it takes three.
func (r *Run) step(data []byte) ([]byte, error) {
	given := func(context.Context, dbos.Tx) ([]byte, error) { return data, nil }
	out, err := dbos.RunAsTransaction(r.inner, r.engine.source, given, dbos.WithStepName("record"))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "record a step of run %s", r.ID)
	}
	return out, nil
}
