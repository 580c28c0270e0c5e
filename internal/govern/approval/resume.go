package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// A run that is not a job continues in the process in which it was approved, its
// carrier. What it does is recorded here, as a job's journal is. The carrier renews a
// lease every few seconds; when the lease has expired, another process continues the
// run from its records.
const lease = 10 * time.Second

// ResumeStore returns the records of a run that this process continues.
func (s *Store) ResumeStore(id string) host.ResumeStore { return &resumeStore{store: s, id: id} }

type resumeStore struct {
	store *Store
	id    string
}

// Record appends a record, unless another process has the run.
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

// Past returns the records of earlier processes.
func (l *resumeStore) Past(ctx context.Context) (records [][]byte, err error) {
	records, err = db.Find(ctx, l.store.db, db.Column[[]byte],
		`SELECT data FROM approval_records WHERE approval = $1 ORDER BY number`, l.id)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read the records of the run of approval %s", l.id)
	}
	return records, nil
}

// Finish stores the outcome of the run and deletes its records.
func (l *resumeStore) Finish(ctx context.Context, outcome json.RawMessage) error {
	err := l.write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE approvals SET outcome = $2, kept = NULL WHERE id = $1`, l.id, []byte(outcome))
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM approval_records WHERE approval = $1`, l.id)
		}
		if err == nil {
			err = tx.Notify(Topic, l.id)
		}
		return err
	})
	if err == nil {
		l.store.wake(l.id)
	}
	return err
}

// write runs f in a transaction if this process has the run.
func (l *resumeStore) write(ctx context.Context, f func(*db.Tx) error) error {
	ctx, _ = db.WaitForDatabase(ctx) // an approved run must not be lost
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.store.life, cancel)() //nolint:contextcheck // the wait also ends with Close
	if l.store.life.Err() != nil {
		return fault.New(fault.Unavailable, "the server is shutting down").WithHint("the script continues when the server runs again")
	}
	ours := false
	err := l.store.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE approvals SET carried = $3 WHERE id = $1 AND carrier = $2 AND outcome IS NULL`,
			l.id, l.store.process, l.store.now().Add(lease).UnixMicro())
		if ours = n > 0; err != nil || !ours {
			return err
		}
		return f(tx)
	})
	switch {
	case err != nil:
		return fault.Wrap(fault.Internal, err, "record a step of the run of approval %s", l.id)
	case !ours:
		return fault.New(fault.Conflict, "another process continues the run of approval %s", l.id).
			WithHint("this process did not renew its lease in time; approval_status shows the outcome of the run")
	}
	return nil
}

// Close stops recording. Other processes, or the next one, continue the runs.
func (s *Store) Close() { s.end() }

// renew renews the leases of this process.
func (s *Store) renew(ctx context.Context) error {
	now := s.now()
	carrying := 0
	err := s.db.QueryRow(ctx, `SELECT count(*) FROM approvals WHERE kept IS NOT NULL AND outcome IS NULL AND carrier = $1`, s.process).Scan(&carrying)
	if err != nil || carrying == 0 {
		return err
	}
	return s.db.Exec(ctx, `UPDATE approvals SET carried = $2 WHERE kept IS NOT NULL AND outcome IS NULL AND carrier = $1`, s.process, now.Add(lease).UnixMicro())
}

// orphans takes over decided runs whose lease has expired, because their process died
// or the request expired without a decision. A run that has made a later request is not
// among them: it waits for that one.
func (s *Store) orphans(ctx context.Context) ([]Approval, error) {
	const orphaned = `kept IS NOT NULL AND outcome IS NULL AND state IN ('allowed', 'denied') AND carried <= $1`
	now, count := s.now(), 0
	err := s.db.QueryRow(ctx, `SELECT count(*) FROM approvals WHERE `+orphaned, now.UnixMicro()).Scan(&count)
	if err != nil || count == 0 {
		return nil, err
	}
	_, err = s.change(ctx, `UPDATE approvals SET outcome = $2, kept = NULL WHERE `+orphaned+`
		AND EXISTS (SELECT 1 FROM approvals later WHERE later.run = approvals.run AND later.created > approvals.created) RETURNING `+columns,
		now.UnixMicro(), []byte(`{"output":[],"status":"pending_approval"}`))
	if err != nil {
		return nil, err
	}
	return s.change(ctx, `UPDATE approvals SET carrier = $2, carried = $3 WHERE `+orphaned+` RETURNING `+columns,
		now.UnixMicro(), s.process, now.Add(lease).UnixMicro())
}
