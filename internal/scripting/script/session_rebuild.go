package script

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// A snapshot of JavaScript is a copy of the engine's memory, which only the same build can
// read. So the turns of these sessions are stored, with the outcomes of their effects.
// When the snapshot does not fit, the turns run again, and their effects are answered from
// what was stored: nothing happens twice.

// pastTurn is a turn as it is stored.
type pastTurn struct {
	version int64
	name    string
	source  sql.NullString // none is a reset
	params  json.RawMessage
	main    bool
	journal []byte
}

// Limits of what is stored of one session. A session with more cannot be rebuilt.
const (
	mostPastTurns = 1000
	mostPastBytes = 16 << 20
)

// storePast stores the turn that made a version of a session, or its reset.
func storePast(ctx context.Context, tx *db.Tx, id string, past pastTurn) error {
	if !past.source.Valid { // what was before does not matter any more
		if err := deletePast(ctx, tx, id); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO session_turns (session, version, name, source, params, main, journal) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		id, past.version, past.name, past.source, []byte(past.params), past.main, past.journal)
	if err != nil {
		return err
	}
	var count, size int64
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(source) + coalesce(length(journal), 0)), 0) FROM session_turns WHERE session = $1`, id).Scan(&count, &size)
	if err != nil || count <= mostPastTurns && size <= mostPastBytes {
		return err
	}
	return deletePast(ctx, tx, id)
}

func deletePast(ctx context.Context, tx *db.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM session_turns WHERE session = $1`, id)
	return err
}

// copyPast gives a fork the turns of its original.
func copyPast(ctx context.Context, tx *db.Tx, from, to string) error {
	_, err := tx.Exec(ctx, `INSERT INTO session_turns (session, version, name, source, params, main, journal)
		SELECT $2, version, name, source, params, main, journal FROM session_turns WHERE session = $1`, from, to)
	return err
}

// pastTurns returns the turns that led to the state of a session; none if some are missing.
func (s *Sessions) pastTurns(ctx context.Context, row sessionRow) (turns []pastTurn, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		turns, err = db.All(ctx, tx, func(row db.Scanner) (p pastTurn, err error) {
			var params []byte
			err = row.Scan(&p.version, &p.name, &p.source, &params, &p.main, &p.journal)
			p.params = params
			return p, err
		}, `SELECT version, name, source, params, main, journal FROM session_turns WHERE session = $1 ORDER BY version`, row.ID)
		return err
	})
	if err != nil || len(turns) == 0 {
		return nil, err
	}
	first := turns[0]
	if complete := first.version == 1 || !first.source.Valid; !complete || first.version+int64(len(turns))-1 != row.Turns {
		return nil, nil
	}
	return turns, nil
}

// errNoPast is returned if the turns of a session are not all stored.
var errNoPast = errors.New("its turns are not stored")

// rebuild makes the state of a session from its turns.
func (s *Sessions) rebuild(ctx context.Context, row sessionRow) (state []byte, err error) {
	turns, err := s.pastTurns(ctx, row)
	if err != nil {
		return nil, err
	}
	if len(turns) == 0 {
		return nil, errNoPast
	}
	for _, past := range turns {
		if !past.source.Valid {
			state = nil
			continue
		}
		if state, err = s.repeat(ctx, row, past, state); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// repeat runs a past turn in the state before it, and returns the state after it.
func (s *Sessions) repeat(ctx context.Context, row sessionRow, past pastTurn, before []byte) ([]byte, error) {
	steps, err := host.ReadJournal(past.journal)
	if err != nil {
		return nil, err
	}
	replay := host.NewReplay(steps, nil)
	q := Request{Source: past.source.String, Params: past.params, Main: past.main, Handler: replay}
	row.state = before
	if q, err = s.inSession(q, row, nil); err != nil {
		return nil, err
	}
	q.Name, q.FlowName = past.name, ""
	_, failed := s.runner.run(ctx, q)
	if err := replay.Err(); err != nil {
		return nil, err
	}
	if err := q.turn.restoreError(); err != nil {
		return nil, err
	}
	state, changed, _ := q.turn.stateAfter(ctx, failed)
	if !changed {
		return nil, errors.Join(errors.New("a turn was stopped"), failed)
	}
	return state, nil
}

// fitted returns a session with a state that its engine can read: a new one if the stored
// one is of another build and the session can be rebuilt.
func (s *Sessions) fitted(ctx context.Context, row sessionRow) (sessionRow, error) {
	js := s.runner.options.JavaScript
	if row.Language != JavaScript || row.state == nil || js == nil {
		return row, nil
	}
	fits, err := js.engine.Fits(ctx, row.state)
	if err != nil || fits {
		return row, err
	}
	state, err := s.rebuild(ctx, row)
	if err != nil {
		s.runner.options.Log.WarnContext(ctx, "session cannot be rebuilt", "error", err)
		return row, nil // restoring it fails, with the reason
	}
	row.state = state
	return row, nil
}
