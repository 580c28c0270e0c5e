package script

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// sessionRow is a session as stored in the database.
type sessionRow struct {
	Session
	state []byte // a snapshot; nil is a fresh state
	run   string // the approved run that saved it, if any

	handle sql.NullString // the name by which it can be used; only read by insert
	past   *pastTurn      // the turn that save stores with the state; nil stores none
	origin string         // id of the session it is forked from; only read by insert
}

const sessionColumns = `id, owner, org, name, language, turns, runs, created, used, time_ms, memory, coalesce(length(state), 0)`

func (s *Sessions) scan(from db.Scanner, more ...any) (Session, error) {
	var one Session
	var created, used, milliseconds int64
	err := from.Scan(append([]any{&one.ID, &one.Owner, &one.Org, &one.Name, &one.Language, &one.Turns, &one.Runs, &created, &used, &milliseconds, &one.Limits.Memory, &one.Size}, more...)...)
	one.Limits.Time = time.Duration(milliseconds) * time.Millisecond
	one.Created, one.Used = time.UnixMicro(created).UTC(), time.UnixMicro(used).UTC()
	one.Expires = one.Used.Add(s.options.Idle)
	return one, err
}

// insert stores a session under a new id, unless its owner has too many.
func (s *Sessions) insert(ctx context.Context, row sessionRow) (Session, error) {
	if err := s.expire(ctx); err != nil {
		return Session{}, err
	}
	now := s.now()
	row.ID, row.Created, row.Used, row.Expires = newSessionID(), now, now, now.Add(s.options.Idle)
	row.Size, row.Org = int64(len(row.state)), principal.OwnerOf(ctx).Org
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		var count int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM sessions WHERE owner = $1`, row.Owner).Scan(&count); err != nil {
			return err
		}
		if count >= s.options.Limit {
			return fault.New(fault.Limit, "you have %d sessions already", count).
				WithHint("session_list shows them, session_close ends one")
		}
		result, err := tx.Exec(ctx, `INSERT INTO sessions (id, owner, name, language, turns, state, created, used, time_ms, memory, handle, runs, org)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, $11, $12) ON CONFLICT (owner, handle) DO NOTHING`,
			row.ID, row.Owner, row.Name, row.Language, row.Turns, row.state, now.UnixMicro(), row.Limits.Time.Milliseconds(), row.Limits.Memory,
			row.handle, row.Runs, row.Org)
		if err != nil {
			return err
		}
		added, err := result.RowsAffected()
		switch {
		case err != nil:
			return err
		case added == 0:
			return errNameTaken
		case row.origin != "":
			return copyPast(ctx, tx, row.origin, row.ID)
		}
		return nil
	})
	return row.Session, err
}

// noVersion makes load read the state whatever its version.
const noVersion = -1

// load reads a session of its owner, with its state unless that has the known version.
// For another owner the session does not exist.
func (s *Sessions) load(ctx context.Context, owner, id string, known int64) (row sessionRow, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		row.Session, err = s.scan(tx.QueryRow(ctx, `SELECT `+sessionColumns+`, CASE WHEN turns = $4 THEN NULL ELSE state END, run
			FROM sessions WHERE id = $1 AND owner = $2 AND used > $3`, id, owner, s.oldest(), known), &row.state, &row.run)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return row, errNoSession()
	}
	return row, err
}

// save stores the state of a session that has not changed since it was loaded.
func (s *Sessions) save(ctx context.Context, row sessionRow) (Session, error) {
	now := s.now()
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `UPDATE sessions SET state = $1, turns = turns + 1, used = $2, run = $5, runs = $7 WHERE id = $3 AND turns = $4 AND holder = $6`,
			row.state, now.UnixMicro(), row.ID, row.Turns, row.run, s.options.Node, row.Runs)
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		switch {
		case err != nil:
			return err
		case changed == 1 && row.past != nil:
			return storePast(ctx, tx, row.ID, *row.past)
		case changed == 1:
			return nil
		}
		return fault.New(fault.Conflict, "the session was changed or closed by another client").
			WithHint("try again; the variables of this turn are lost")
	})
	row.Turns, row.Used, row.Expires, row.Size = row.Turns+1, now, now.Add(s.options.Idle), int64(len(row.state))
	return row.Session, err
}

// touch records that a session was used, unless that was recorded recently: expiry is a
// matter of days.
func (s *Sessions) touch(ctx context.Context, row sessionRow) error {
	now := s.now()
	if now.Sub(row.Used) < min(time.Minute, s.options.Idle/100) {
		return nil
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET used = $1 WHERE id = $2`, now.UnixMicro(), row.ID)
		return err
	})
}

func (s *Sessions) remove(ctx context.Context, owner, id string) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `DELETE FROM sessions WHERE id = $1 AND owner = $2 AND used > $3`, id, owner, s.oldest())
		if err != nil {
			return err
		}
		gone, err := result.RowsAffected()
		switch {
		case err != nil:
			return err
		case gone == 1:
			return deletePast(ctx, tx, id)
		}
		return errNoSession()
	})
}

// List returns an owner's sessions, the oldest first, and then those that others share with
// the caller.
func (s *Sessions) List(ctx context.Context, owner string) (list []Session, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list, err = db.All(ctx, tx, func(row db.Scanner) (Session, error) { return s.scan(row) },
			`SELECT `+sessionColumns+` FROM sessions WHERE owner = $1 AND used > $2 ORDER BY created, id`, owner, s.oldest())
		return err
	})
	if err != nil {
		return nil, err
	}
	others, err := s.sharedSessions(ctx, owner)
	list = append(list, others...)
	for i := range list {
		list[i].Runs = s.runs.of(list[i].ID, list[i].Runs)
	}
	return list, err
}

// expire removes expired sessions. They are ignored before they are removed, so it need
// not run in time.
func (s *Sessions) expire(ctx context.Context) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		oldest := s.oldest()
		if _, err := tx.Exec(ctx, `DELETE FROM session_turns WHERE session IN (SELECT id FROM sessions WHERE used <= $1)`, oldest); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE used <= $1`, oldest)
		return err
	})
}

// oldest returns the last use, in microseconds, of a session that expires now.
func (s *Sessions) oldest() int64 { return s.now().Add(-s.options.Idle).UnixMicro() }

func (s *Sessions) now() time.Time { return s.options.Clock.Now().UTC() }

func errNoSession() error {
	return fault.New(fault.NotFound, "no such session").
		WithHint("session_list shows your sessions; session_create creates one. Unused sessions expire")
}
