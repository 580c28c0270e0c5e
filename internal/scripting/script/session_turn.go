package script

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// Turn is the outcome of one run in a session, also of one that failed.
type Turn struct {
	Outcome
	Session  Session
	Warnings []string // values that could not be saved, and why
}

// Eval runs a request in a session, after all earlier turns. Output and Services are the
// turn's own; globals are the session's. A script that fails keeps the changes it made
// to globals before it failed. A script that is stopped, by a limit or by cancelling
// ctx, leaves the session as it was before the turn. The error is an *Error if the
// script failed.
//
// The session is given by its id or name. A name that is used for the first time creates
// one, in the request's language. If the request calls main, its params are checked
// against describe().
func (s *Sessions) Eval(ctx context.Context, owner, ref string, q Request) (done Turn, err error) {
	id, err := s.idFor(ctx, owner, ref, q.Language)
	if err != nil {
		return done, err
	}
	if q.Main {
		if q, err = s.prepare(ctx, owner, id, q); err != nil {
			return done, s.explain(ctx, id, err)
		}
	}
	a := &approvedRun{runner: s.runner, key: newRunKey(), owner: owner, session: id, request: q}
	done, err = s.runTurn(ctx, a, false)
	if _, problem := a.finish(ctx, done, err); err == nil {
		err = problem
	}
	return done, s.explain(ctx, id, err)
}

// runTurn runs a turn of a session. A turn that is resumed requires that the session has
// not changed since the turn paused.
func (s *Sessions) runTurn(ctx context.Context, a *approvedRun, resumed bool) (done Turn, err error) {
	err = s.inTurn(ctx, a.session, func(ctx context.Context) error {
		t := &turnRun{sessions: s, approved: a, resumed: resumed}
		a.once = t.once
		done.Outcome, err = s.runApproved(ctx, a)
		if errors.Is(err, errTurnSaved) {
			done.Session, done.Warnings = t.row.Session, []string{errTurnSaved.Error()}
			return nil
		}
		if t.q.turn == nil || t.q.turn.restoreError() != nil || a.rehearsed {
			return err
		}
		if parent := host.ParentOf(ctx); parent != nil && host.Rehearsing(parent.Handler) {
			done.Session = t.row.Session // the parent run is only rehearsed
			return err
		}
		var problem error
		done.Session, done.Warnings, problem = t.save(context.WithoutCancel(ctx), err)
		s.publish(ctx, "used", done.Session, err != nil)
		if err == nil {
			err = problem
		}
		return err
	})
	return done, err
}

// turnRun is a turn while it runs. Of several attempts, it has the last.
type turnRun struct {
	sessions *Sessions
	approved *approvedRun
	resumed  bool

	row       sessionRow
	live      *liveState
	q         Request
	recording *host.Recording // of its effects, if the session may have to be rebuilt; nil otherwise
}

// once runs the request in the session, with a Handler.
func (t *turnRun) once(ctx context.Context, handler host.Handler) (_ Outcome, err error) {
	s, a := t.sessions, t.approved
	if t.row, t.live, err = s.fetch(ctx, a.owner, a.session); err != nil {
		return Outcome{}, err
	}
	switch {
	case t.resumed && t.row.Turns == a.turns+1 && t.row.run == a.key:
		return Outcome{}, errTurnSaved
	case t.resumed && t.row.Turns != a.turns:
		return Outcome{}, errSessionChanged(a.session)
	}
	a.turns = t.row.Turns
	if t.q, err = s.inSession(a.request, t.row, t.live); err != nil {
		return Outcome{}, err
	}
	t.q.Handler = t.record(ctx, handler)
	outcome, err := s.runner.run(ctx, t.q)
	if lost := t.q.turn.restoreError(); lost != nil {
		return outcome, lost
	}
	return outcome, err
}

// record records the effects of a turn whose session may have to be rebuilt. Those of a
// nested run are not recorded, because they have the numbers of another run.
func (t *turnRun) record(ctx context.Context, handler host.Handler) host.Handler {
	if t.row.Language != JavaScript || host.ParentOf(ctx) != nil {
		return handler
	}
	if handler == nil {
		handler = host.Live()
	}
	t.recording = host.NewRecording(handler)
	return t.recording
}

// save saves the session after the turn.
func (t *turnRun) save(ctx context.Context, failed error) (Session, []string, error) {
	row, q := t.row, t.q
	if t.approved.resumeStore != nil {
		row.run = t.approved.key
	}
	if t.recording != nil {
		row.past = &pastTurn{
			version: row.Turns + 1, name: q.Name, source: sql.NullString{String: q.Source, Valid: true},
			params: q.Params, main: q.Main, journal: t.recording.Journal(),
		}
	}
	return t.sessions.saveTurn(ctx, row, t.live, q.turn, failed)
}

// runApproved runs a turn, with approvals unless it is part of a parent run.
func (s *Sessions) runApproved(ctx context.Context, a *approvedRun) (Outcome, error) {
	if a.request.Handler != nil || host.ParentOf(ctx) != nil || s.runner.options.Approvals == nil {
		return a.once(ctx, a.request.Handler)
	}
	return a.run(ctx)
}

// Preview runs a request in a copy of a session, after all earlier turns, and discards
// the copy. The request's Handler must prevent other changes.
func (s *Sessions) Preview(ctx context.Context, owner, ref string, q Request) (outcome Outcome, err error) {
	id, owner, err := s.shared(ctx, owner, ref, principal.Use)
	if err != nil {
		return outcome, err
	}
	return s.previewOf(ctx, owner, id, q)
}

// previewOf runs a request in a copy of a session.
func (s *Sessions) previewOf(ctx context.Context, owner, id string, q Request) (outcome Outcome, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, live, err := s.fetchCopy(ctx, owner, id)
		if err != nil {
			return err
		}
		if q, err = s.inSession(q, row, live); err != nil {
			return err
		}
		outcome, err = s.runner.Run(ctx, q)
		if lost := q.turn.restoreError(); lost != nil {
			return lost
		}
		return err
	})
	return outcome, err
}

// fetch reads a session, with its state from the cache if that is the newest.
func (s *Sessions) fetch(ctx context.Context, owner, id string) (sessionRow, *liveState, error) {
	row, err := s.load(ctx, owner, id, s.live.version(id))
	if err != nil {
		return row, nil, err
	}
	row.Runs = s.runs.of(id, row.Runs)
	live := s.live.take(id, row.Turns)
	if live == nil && row.state == nil && row.Size > 0 { // dropped from the cache meanwhile
		runs := row.Runs
		if row, err = s.load(ctx, owner, id, noVersion); err != nil {
			return row, nil, err
		}
		row.Runs = runs
	}
	row, err = s.fitted(ctx, row)
	return row, live, err
}

// fetchCopy is fetch for a run that must not change the session.
func (s *Sessions) fetchCopy(ctx context.Context, owner, id string) (sessionRow, *liveState, error) {
	row, live, err := s.fetch(ctx, owner, id)
	if err != nil || live == nil {
		return row, live, err
	}
	s.live.put(live)
	live, err = live.copied()
	return row, live, err
}

// inSession makes a request the next turn of a session.
func (s *Sessions) inSession(q Request, row sessionRow, live *liveState) (Request, error) {
	if q.Language != "" && q.Language != row.Language {
		return q, fault.New(fault.InvalidParams, "the session's language is %s, but the request asks for %s", row.Language, q.Language).
			WithHint("omit language, or create another session")
	}
	q.Language = row.Language
	// Functions keep the name of the turn that defined them, so that an error shows
	// which source its lines refer to.
	q.Name = fmt.Sprintf("turn%d", row.Runs+1)
	q.Limits = q.Limits.orDefault(s.options.Turn).orDefault(s.runner.options.Limits).within(row.Limits)
	engine, err := s.runner.engineFor(q)
	if err != nil {
		return q, err
	}
	q.turn, q.FlowName = engine.turn(row.state), "session:"+row.ID
	if ready, ok := q.turn.(readyTurn); ok && live != nil {
		ready.reuse(live.state)
	}
	return q, nil
}

// within narrows the time and memory of a run.
func (l Limits) within(bound Limits) Limits {
	if bound.Time > 0 {
		l.Time = min(l.Time, bound.Time)
	}
	if bound.Memory > 0 {
		l.Memory = min(l.Memory, bound.Memory)
	}
	return l
}

// saveTurn saves the state after a turn, unless the turn was stopped. before is the cached
// state it ran in, or nil.
func (s *Sessions) saveTurn(ctx context.Context, row sessionRow, before *liveState, t turn, failed error) (Session, []string, error) {
	state, changed, warnings := t.stateAfter(ctx, failed)
	row.Runs++
	s.runs.set(row.ID, row.Runs)
	if changed && int64(len(state)) > s.options.State {
		changed = false
		warnings = []string{turnUnsaved + fmt.Sprintf("it takes %d bytes, %d are allowed", len(state), s.options.State)}
	}
	if !changed {
		return row.Session, warnings, s.touch(ctx, row)
	}
	session, sum := row.Session, sha256.Sum256(state)
	var err error
	if sum == sumBefore(row, before) {
		err = s.touch(ctx, row)
	} else {
		row.state = state
		if session, err = s.save(ctx, row); err == nil {
			s.runs.forget(row.ID)
		}
	}
	if ready, ok := t.(readyTurn); ok && err == nil && len(warnings) == 0 { // values that were not saved must be missing in the next turn too
		s.live.put(&liveState{id: row.ID, version: session.Turns, state: ready.ready(), size: int64(len(state)), sum: sum})
	}
	return session, warnings, err
}

// sumBefore returns the checksum of the state that was saved before a turn.
func sumBefore(row sessionRow, before *liveState) (sum [32]byte) {
	switch {
	case before != nil:
		return before.sum
	case row.state != nil:
		return sha256.Sum256(row.state)
	}
	return sum
}

// errTurnSaved is the error of a turn that was saved by a process that stopped before it
// returned the result.
var errTurnSaved = errors.New("the server stopped after the turn was saved: its result is lost")

// Warnings about a turn that changed nothing.
const (
	turnStopped = "the turn was stopped, and the session is as it was before"
	turnUnsaved = "the turn could not be saved, and the session is as it was before: "
)

// runCounts counts the turns of sessions since they were last saved. A turn that changes
// nothing is not saved, but has a number of its own. It is safe for concurrent use.
type runCounts struct {
	mu     sync.Mutex
	counts map[string]int64 // by id; the count of all turns
}

// of returns how many turns a session has had, at least as many as were saved.
func (c *runCounts) of(id string, saved int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.counts[id], saved)
}

// set records the number of turns of a session that was not saved.
func (c *runCounts) set(id string, count int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int64{}
	}
	c.counts[id] = count
}

// forget removes a session, which was saved or closed.
func (c *runCounts) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.counts, id)
}

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
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(source) + coalesce(length(journal), 0)), 0)
		FROM session_turns WHERE session = $1`, id).Scan(&count, &size)
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
	turns, err = db.Find(ctx, s.db, func(row db.Scanner) (p pastTurn, err error) {
		var params []byte
		err = row.Scan(&p.version, &p.name, &p.source, &params, &p.main, &p.journal)
		p.params = params
		return p, err
	}, `SELECT version, name, source, params, main, journal FROM session_turns WHERE session = $1 ORDER BY version`, row.ID)
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
