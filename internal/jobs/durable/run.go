package durable

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/luanette/luanette/internal/base/fault"
)

// Run is an active run. Its records are a list: those of earlier processes come
// first, and Record appends to it.
type Run struct {
	ID string

	engine *Engine
	inner  dbos.Context // carries the position in the workflow

	mu      sync.Mutex // DBOS numbers steps without a lock
	past    int        // records read by Past that DBOS has not replayed yet
	next    int        // number of the next record, on Postgres
	delayed atomic.Bool
}

// Past returns what earlier processes recorded. Call it once, before the first Record.
func (r *Run) Past() ([][]byte, error) {
	records, err := r.engine.Records(r.ID)
	r.past, r.next = len(records), len(records)
	return records, err
}

// Record appends a record and returns when it is on disk. Calls run one after the
// other.
func (r *Run) Record(data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine.external.Postgres != nil {
		return r.recordShared(data)
	}
	for ; r.past > 0; r.past-- { // DBOS counts the steps of earlier processes too
		if _, err := r.step(nil); err != nil {
			return err
		}
	}
	_, err := r.step(data)
	return err
}

// step runs the next step of the workflow: DBOS answers an old one from its record,
// and a new one records data. RunAsTransaction needs one transaction per step where
// RunAsStep needs three.
func (r *Run) step(data []byte) ([]byte, error) {
	body := func(context.Context, dbos.Tx) ([]byte, error) { return data, nil }
	out, err := dbos.RunAsTransaction(r.inner, r.engine.source, body, dbos.WithStepName("record"))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "record a step of run %s", r.ID)
	}
	return out, nil
}
