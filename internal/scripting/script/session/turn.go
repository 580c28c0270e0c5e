package session

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
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
)

// Turn is the outcome of one run in a session, also of one that failed.
type Turn struct {
	script.Outcome
	Session  Session
	Warnings []string // values that could not be saved, and why
}

// Eval runs a request in a session, after all earlier turns. Output and Services are the
// turn's own; globals are the session's. A script that fails keeps the changes it made
// to globals before it failed. A script that is stopped, by a limit or by cancelling
// ctx, leaves the session as it was before the turn. The error is a *script.Error if the
// script failed.
//
// The session is given by its id or name. A name that is used for the first time creates
// one, in the request's language. If the request calls main, its params are checked
// against describe().
func (s *Sessions) Eval(ctx context.Context, owner, ref string, q script.Request) (done Turn, err error) {
	id, err := s.idFor(ctx, owner, ref, q.Language)
	if err != nil {
		return done, err
	}
	if q.Main {
		if q, err = s.prepare(ctx, owner, id, q); err != nil {
			return done, s.explain(ctx, id, err)
		}
	}
	a := script.NewApprovedRun(q)
	a.Owner, a.Session = owner, id
	done, err = s.run(ctx, a, false)
	if problem := s.runner.Finish(ctx, a, done.Outcome, done.Warnings, err); err == nil {
		err = problem
	}
	return done, s.explain(ctx, id, err)
}

// prepare checks the params of a turn that calls main, and fills in defaults.
func (s *Sessions) prepare(ctx context.Context, owner, id string, q script.Request) (script.Request, error) {
	session, err := s.load(ctx, owner, id, s.live.version(id))
	if err != nil {
		return q, err
	}
	return s.runner.PrepareTurn(ctx, q, session.Language, func(described script.Request) (script.Outcome, error) {
		return s.Preview(ctx, owner, id, described)
	})
}

// Resume continues a run that was stored while it waited for approval, in its session if it
// is a turn of one. See script.Runner.Resume.
func (s *Sessions) Resume(ctx context.Context, id string, who host.RunInfo, stored []byte, q script.Request) (json.RawMessage, error) {
	return s.runner.Resume(ctx, id, who, stored, q, s)
}

// Plan makes the plan of a run again that waits for approval.
func (s *Sessions) Plan(ctx context.Context, who host.RunInfo, stored []byte) (host.Plan, error) {
	return s.runner.Plan(ctx, who, stored, s)
}

// ResumeTurn continues a turn that waited for approval.
func (s *Sessions) ResumeTurn(ctx context.Context, a *script.ApprovedRun) (script.Outcome, []string, error) {
	done, err := s.run(ctx, a, true)
	return done.Outcome, done.Warnings, err
}

// run makes a turn of a session. A turn that is resumed requires that the session has not
// changed since the turn paused.
func (s *Sessions) run(ctx context.Context, a *script.ApprovedRun, resumed bool) (done Turn, err error) {
	err = s.inTurn(ctx, a.Session, func(ctx context.Context) error {
		t := &turnRun{sessions: s, approved: a, resumed: resumed}
		outcome, err := s.runner.Approve(ctx, a, t.attempt)
		state := outcome.State
		outcome.State = nil // it is the next turn's
		done.Outcome = outcome
		if errors.Is(err, errTurnSaved) {
			done.Session, done.Warnings = t.row.Session, []string{errTurnSaved.Error()}
			return nil
		}
		if state == nil {
			return err
		}
		if parent := host.ParentOf(ctx); parent != nil && host.Rehearsing(parent.Handler) {
			done.Session = t.row.Session // the parent run is only rehearsed
			return err
		}
		var problem error
		done.Session, done.Warnings, problem = t.save(context.WithoutCancel(ctx), state)
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
	approved *script.ApprovedRun
	resumed  bool

	row       sessionRow
	live      *liveState
	q         script.Request
	recording *host.Recording // of its effects, if the session may have to be rebuilt; nil otherwise
}

// attempt runs the request in the session, with a Handler.
func (t *turnRun) attempt(ctx context.Context, handler host.Handler) (_ script.Outcome, err error) {
	s, a := t.sessions, t.approved
	if t.row, t.live, err = s.fetch(ctx, a.Owner, a.Session); err != nil {
		return script.Outcome{}, err
	}
	switch {
	case t.resumed && t.row.Turns == a.Turns+1 && t.row.run == a.Key:
		return script.Outcome{}, errTurnSaved
	case t.resumed && t.row.Turns != a.Turns:
		return script.Outcome{}, errSessionChanged(a.Session)
	}
	a.Turns = t.row.Turns
	if t.q, err = s.inSession(a.Request, t.row, t.live); err != nil {
		return script.Outcome{}, err
	}
	t.q.Handler = t.record(ctx, handler)
	return s.runner.Run(ctx, t.q)
}

// record records the effects of a turn whose session may have to be rebuilt. Those of a
// nested run are not recorded, because they have the numbers of another run.
func (t *turnRun) record(ctx context.Context, handler host.Handler) host.Handler {
	if t.row.Language != script.JavaScript || host.ParentOf(ctx) != nil {
		return handler
	}
	if handler == nil {
		handler = host.Live()
	}
	t.recording = host.NewRecording(handler)
	return t.recording
}

// save saves the session after the turn.
func (t *turnRun) save(ctx context.Context, state script.State) (Session, []string, error) {
	row, q := t.row, t.q
	if t.approved.Resumed() {
		row.run = t.approved.Key
	}
	if t.recording != nil {
		row.past = &pastTurn{
			version: row.Turns + 1, name: q.Name, source: sql.NullString{String: q.Source, Valid: true},
			params: q.Params, main: q.Main, journal: t.recording.Journal(),
		}
	}
	return t.sessions.saveTurn(ctx, row, t.live, state)
}

// Preview runs a request in a copy of a session, after all earlier turns, and discards
// the copy. The request's Handler must prevent other changes.
func (s *Sessions) Preview(ctx context.Context, owner, ref string, q script.Request) (outcome script.Outcome, err error) {
	id, owner, err := s.shared(ctx, owner, ref, principal.Use)
	if err != nil {
		return outcome, err
	}
	return s.PreviewTurn(ctx, owner, id, q)
}

// PreviewTurn is Preview for the id of a session and its owner.
func (s *Sessions) PreviewTurn(ctx context.Context, owner, id string, q script.Request) (outcome script.Outcome, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, live, err := s.fetchCopy(ctx, owner, id)
		if err != nil {
			return err
		}
		if q, err = s.inSession(q, row, live); err != nil {
			return err
		}
		outcome, err = s.runner.Run(ctx, q)
		return err
	})
	return outcome, err
}

// Script extracts a function of a session as a script, with everything it uses. The session
// does not change. See script.Runner.Extract.
func (s *Sessions) Script(ctx context.Context, owner, ref, name string) (w script.ExtractedScript, err error) {
	id, owner, err := s.shared(ctx, owner, ref, principal.See)
	if err != nil {
		return w, err
	}
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, live, err := s.fetchCopy(ctx, owner, id)
		if err != nil {
			return err
		}
		q, err := s.inSession(script.Request{}, row, live)
		if err != nil {
			return err
		}
		w, err = s.runner.Extract(ctx, q, name)
		return err
	})
	return w, err
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
func (s *Sessions) inSession(q script.Request, row sessionRow, live *liveState) (script.Request, error) {
	if q.Language != "" && q.Language != row.Language {
		return q, fault.New(fault.InvalidParams, "the session's language is %s, but the request asks for %s", row.Language, q.Language).
			WithHint("omit language, or create another session")
	}
	q.Language = row.Language
	// Functions keep the name of the turn that defined them, so that an error shows
	// which source its lines refer to.
	q.Name = fmt.Sprintf("turn%d", row.Runs+1)
	q.Limits = q.Limits.OrDefault(s.options.Turn).OrDefault(s.runner.Limits()).Within(row.Limits)
	q.FlowName, q.State = "session:"+row.ID, &script.SavedState{Bytes: row.state}
	if live != nil {
		q.State.Live = live.state
	}
	return q, s.runner.CheckLanguage(q.Language)
}

// saveTurn saves the state after a turn, unless the turn was stopped. before is the cached
// state it ran in, or nil.
func (s *Sessions) saveTurn(ctx context.Context, row sessionRow, before *liveState, after script.State) (Session, []string, error) {
	saved, warnings, changed := s.snapshot(ctx, after)
	row.Runs++
	s.runs.set(row.ID, row.Runs)
	if !changed {
		return row.Session, warnings, s.touch(ctx, row)
	}
	session, sum := row.Session, sha256.Sum256(saved)
	var err error
	if sum == sumBefore(row, before) {
		err = s.touch(ctx, row)
	} else {
		row.state = saved
		if session, err = s.save(ctx, row); err == nil {
			s.runs.forget(row.ID)
		}
	}
	if live := after.Live(); live != nil && err == nil && len(warnings) == 0 { // values that were not saved must be missing in the next turn too
		s.live.put(&liveState{id: row.ID, version: session.Turns, state: live, size: int64(len(saved)), sum: sum})
	}
	return session, warnings, err
}

// snapshot returns the state after a turn as bytes. changed is false if the session stays as
// it was; warnings say why, or which values could not be saved.
func (s *Sessions) snapshot(ctx context.Context, after script.State) (saved []byte, warnings []string, changed bool) {
	if after.Stopped() {
		return nil, []string{turnStopped}, false
	}
	saved, omitted, err := after.Snapshot(ctx)
	if err != nil {
		return nil, []string{turnUnsaved + err.Error()}, false
	}
	if int64(len(saved)) > s.options.State {
		return nil, []string{turnUnsaved + fmt.Sprintf("it takes %d bytes, %d are allowed", len(saved), s.options.State)}, false
	}
	for _, one := range omitted {
		warnings = append(warnings, "not saved after this turn: "+one)
	}
	return saved, warnings, true
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

// errSessionChanged is the error of a turn whose session has changed since it paused.
func errSessionChanged(id string) error {
	return fault.New(fault.Conflict, "session %s was changed while the turn waited for approval", id).
		WithHint("run the turn again; its effects before the pause are not undone")
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
	q := script.Request{Source: past.source.String, Params: past.params, Main: past.main, Handler: replay}
	row.state = before
	if q, err = s.inSession(q, row, nil); err != nil {
		return nil, err
	}
	q.Name, q.FlowName = past.name, ""
	outcome, failed := s.runner.Run(ctx, q)
	if err := replay.Err(); err != nil {
		return nil, err
	}
	if outcome.State == nil || outcome.State.Stopped() {
		return nil, errors.Join(errors.New("a turn was stopped"), failed)
	}
	state, _, err := outcome.State.Snapshot(ctx)
	return state, err
}

// fitted returns a session with a state that its engine can read: a new one if the stored
// one is of another build and the session can be rebuilt.
func (s *Sessions) fitted(ctx context.Context, row sessionRow) (sessionRow, error) {
	fits, err := s.runner.Fits(ctx, row.Language, row.state)
	if err != nil || fits {
		return row, err
	}
	state, err := s.rebuild(ctx, row)
	if err != nil {
		s.options.Log.WarnContext(ctx, "session cannot be rebuilt", "error", err)
		return row, nil // restoring it fails, with the reason
	}
	row.state = state
	return row, nil
}
