package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// A run that is no job goes on in the process in which it was decided about, its
// carrier. What it does is recorded here as a job's is in its journal. A carrier
// says every few seconds that it lives; when it has not for as long as a lease,
// another process carries the run on, from what is recorded.
const lease = 10 * time.Second

// ResumeStore is the ledger of a run that this process goes on with.
func (o *Store) ResumeStore(id string) host.ResumeStore { return &resumeStore{store: o, id: id} }

type resumeStore struct {
	store *Store
	id    string
}

// Record keeps what comes next, unless another process carries the run.
func (l *resumeStore) Record(data []byte) error {
	ctx := l.store.life
	return l.write(ctx, func(tx *db.Tx) error {
		var before int64
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM approval_records WHERE approval = $1`, l.id).Scan(&before); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO approval_records (approval, number, data) VALUES ($1, $2, $3)`, l.id, before+1, data)
		return err
	})
}

// Past is what was recorded before.
func (l *resumeStore) Past(ctx context.Context) (records [][]byte, err error) {
	err = l.store.db.Read(ctx, func(tx *db.Tx) error {
		records, err = db.All(ctx, tx, func(row db.Scanner) (data []byte, err error) { return data, row.Scan(&data) },
			`SELECT data FROM approval_records WHERE approval = $1 ORDER BY number`, l.id)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read how far the run of approval %s came", l.id)
	}
	return records, nil
}

// Finish keeps what became of the run. What was needed to go on is not any more.
func (l *resumeStore) Finish(ctx context.Context, outcome json.RawMessage) error {
	return l.write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE approvals SET outcome = $2, kept = NULL WHERE id = $1`, l.id, []byte(outcome))
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM approval_records WHERE approval = $1`, l.id)
		}
		return err
	})
}

// write does something while the run is ours to go on with.
func (l *resumeStore) write(ctx context.Context, f func(*db.Tx) error) error {
	ctx, _ = db.WaitForDatabase(ctx) // what was decided is done
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.store.life, cancel)() //nolint:contextcheck // the wait ends with the office, too
	if l.store.life.Err() != nil {
		return fault.New(fault.Unavailable, "the server is shutting down").WithHint("the script goes on by itself when the server runs again")
	}
	ours := false
	err := l.store.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `UPDATE approvals SET carried = $3 WHERE id = $1 AND carrier = $2 AND outcome IS NULL`,
			l.id, l.store.process, l.store.now().Add(lease).UnixMicro())
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if ours = n > 0; err != nil || !ours {
			return err
		}
		return f(tx)
	})
	switch {
	case err != nil:
		return fault.Wrap(fault.Internal, err, "keep how far the run of approval %s came", l.id)
	case !ours:
		return fault.New(fault.Conflict, "another process goes on with the run of approval %s", l.id).
			WithHint("this one was silent for too long; approval_status tells what becomes of the run")
	}
	return nil
}

// Close keeps nothing more of the runs that go on: other processes go on with
// them, or the next.
func (o *Store) Close() { o.end() }

// renew says that this process lives.
func (o *Store) renew(ctx context.Context) error {
	now := o.now()
	carrying := 0
	err := o.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM approvals WHERE kept IS NOT NULL AND outcome IS NULL AND carrier = $1`, o.process).Scan(&carrying)
	})
	if err != nil || carrying == 0 {
		return err
	}
	return o.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE approvals SET carried = $2 WHERE kept IS NOT NULL AND outcome IS NULL AND carrier = $1`, o.process, now.Add(lease).UnixMicro())
		return err
	})
}

// orphans takes over the runs that were decided about and that nobody goes on
// with: their process died, or their question ended without an answer. One that
// has asked again since is not among them: that question is where it stands.
func (o *Store) orphans(ctx context.Context) ([]Approval, error) {
	const orphaned = `kept IS NOT NULL AND outcome IS NULL AND state IN ('allowed', 'denied') AND carried <= $1`
	now, count := o.now(), 0
	err := o.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM approvals WHERE `+orphaned, now.UnixMicro()).Scan(&count)
	})
	if err != nil || count == 0 {
		return nil, err
	}
	_, err = o.change(ctx, `UPDATE approvals SET outcome = $2, kept = NULL WHERE `+orphaned+`
		AND EXISTS (SELECT 1 FROM approvals later WHERE later.run = approvals.run AND later.created > approvals.created) RETURNING `+columns,
		now.UnixMicro(), []byte(`{"output":[],"status":"pending_approval"}`))
	if err != nil {
		return nil, err
	}
	return o.change(ctx, `UPDATE approvals SET carrier = $2, carried = $3 WHERE `+orphaned+` RETURNING `+columns,
		now.UnixMicro(), o.process, now.Add(lease).UnixMicro())
}
