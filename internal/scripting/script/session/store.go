package session

import (
	linked "container/list"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
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
	columns := []any{
		&one.ID, &one.Owner, &one.Org, &one.Name, &one.Language, &one.Turns, &one.Runs,
		&created, &used, &milliseconds, &one.Limits.Memory, &one.Size,
	}
	err := from.Scan(append(columns, more...)...)
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
	row.ID, row.Created, row.Used, row.Expires = newID(), now, now, now.Add(s.options.Idle)
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
		added, err := tx.Exec(ctx, `INSERT INTO sessions (id, owner, name, language, turns, state, created, used, time_ms, memory, handle, runs, org)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, $11, $12) ON CONFLICT (owner, handle) DO NOTHING`,
			row.ID, row.Owner, row.Name, row.Language, row.Turns, row.state, now.UnixMicro(), row.Limits.Time.Milliseconds(), row.Limits.Memory,
			row.handle, row.Runs, row.Org)
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
		changed, err := tx.Exec(ctx, `UPDATE sessions SET state = $1, turns = turns + 1, used = $2, run = $5, runs = $7
			WHERE id = $3 AND turns = $4 AND holder = $6`,
			row.state, now.UnixMicro(), row.ID, row.Turns, row.run, s.options.Node, row.Runs)
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
	return s.db.Exec(ctx, `UPDATE sessions SET used = $1 WHERE id = $2`, now.UnixMicro(), row.ID)
}

func (s *Sessions) remove(ctx context.Context, owner, id string) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		gone, err := tx.Exec(ctx, `DELETE FROM sessions WHERE id = $1 AND owner = $2 AND used > $3`, id, owner, s.oldest())
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
	list, err = db.Find(ctx, s.db, func(row db.Scanner) (Session, error) { return s.scan(row) },
		`SELECT `+sessionColumns+` FROM sessions WHERE owner = $1 AND used > $2 ORDER BY created, id`, owner, s.oldest())
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

// liveState is a session's state after its last turn, so that the next turn need not
// restore the saved one. It is valid for one version: if the saved version is another,
// another node has changed the session.
type liveState struct {
	id      string
	version int64 // Session.Turns when it was saved
	state   script.LiveState
	size    int64    // of the saved state, to estimate memory
	sum     [32]byte // of the saved bytes
}

// liveStates caches the states of recently used sessions, up to a total weight. A state
// in use is not in it. It is safe for concurrent use.
type liveStates struct {
	limit int64
	count func(int64) // is told how the weight changes

	mu     sync.Mutex
	weight int64
	order  *linked.List // of *liveState, most recently used first
	byID   map[string]*linked.Element
}

func newLiveStates(limit int64, count func(int64)) *liveStates {
	return &liveStates{limit: limit, count: count, order: linked.New(), byID: map[string]*linked.Element{}}
}

// stateWeight is the memory of an empty state: its libraries.
const stateWeight = 64 << 10

// copied returns a copy of the state, for a turn that must not change it.
func (l *liveState) copied() (*liveState, error) {
	state, err := l.state.Fork()
	return &liveState{state: state, sum: l.sum}, err
}

func (l *liveState) weight() int64 { return stateWeight + 4*l.size }

// version returns the version of the cached state of a session, or -1.
func (s *liveStates) version(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[id]; e != nil {
		return e.Value.(*liveState).version
	}
	return -1
}

// take removes and returns the state of a session if it has that version; an older one
// is dropped.
func (s *liveStates) take(id string, version int64) *liveState {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[id]
	if e == nil {
		return nil
	}
	one := s.drop(e)
	if one.version != version {
		return nil
	}
	return one
}

// put caches a state and drops the least recently used ones.
func (s *liveStates) put(one *liveState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[one.id]; e != nil {
		s.drop(e)
	}
	s.byID[one.id] = s.order.PushFront(one)
	s.add(one.weight())
	for s.weight > s.limit && s.order.Len() > 0 {
		s.drop(s.order.Back())
	}
}

// drop removes an entry; mu is held.
func (s *liveStates) drop(e *linked.Element) *liveState {
	one := s.order.Remove(e).(*liveState)
	delete(s.byID, one.id)
	s.add(-one.weight())
	return one
}

// add changes the total weight; mu is held.
func (s *liveStates) add(weight int64) {
	s.weight += weight
	s.count(weight)
}

// Several nodes may share sessions. The node that runs a turn owns the session's row
// until the turn ends, or until the node is known to have stopped. So turns never
// overlap, and a node whose cached state is older than the row loads the saved one.

// pollInterval is how often a node polls whether a session is free.
const pollInterval = 200 * time.Millisecond

// hold waits until no other node runs a turn of the session.
func (s *Sessions) hold(ctx context.Context, id string) (release func(), err error) {
	if s.options.Node == "" {
		return func() {}, nil
	}
	for {
		held, err := s.tryHold(ctx, id)
		if err != nil {
			return nil, err
		}
		if held {
			return func() { s.release(context.WithoutCancel(ctx), id) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// tryHold makes this node the owner of a session, unless another node owns it. A session
// that does not exist has no owner.
func (s *Sessions) tryHold(ctx context.Context, id string) (held bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE sessions SET holder = $2 WHERE id = $1 AND holder = ''`, id, s.options.Node); err != nil {
			return err
		}
		var others int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM sessions WHERE id = $1 AND holder <> $2`, id, s.options.Node).Scan(&others)
		held = others == 0
		return err
	})
	return held, err
}

func (s *Sessions) release(ctx context.Context, id string) {
	err := s.db.Exec(ctx, `UPDATE sessions SET holder = '' WHERE id = $1 AND holder = $2`, id, s.options.Node)
	if err != nil { // the session stays owned until this node stops or uses it again
		s.options.Log.ErrorContext(ctx, "release session", "error", err)
	}
}

// Owners returns the nodes that own sessions.
func (s *Sessions) Owners(ctx context.Context) (nodes []string, err error) {
	return db.Find(ctx, s.db, db.Column[string],
		`SELECT DISTINCT holder FROM sessions WHERE holder <> ''`)
}

// TakeOver releases the sessions of nodes that have stopped. Their unfinished turns are
// lost.
func (s *Sessions) TakeOver(ctx context.Context, dead []string) error {
	for _, node := range dead {
		err := s.db.Exec(ctx, `UPDATE sessions SET holder = '' WHERE holder = $1`, node)
		if err != nil {
			return err
		}
	}
	return nil
}

// ReleaseSessions releases all sessions in a restored database, whichever node owned
// them.
func ReleaseSessions(ctx context.Context, d *db.DB) error {
	return d.Exec(ctx, `UPDATE sessions SET holder = '' WHERE holder <> ''`)
}

// Recheck does nothing: a turn whose session was reassigned fails when it saves.
func (s *Sessions) Recheck(context.Context) error { return nil }

// Personal lists the tables with sessions.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "session_turns", Where: "session IN (SELECT id FROM sessions WHERE OWNER(owner))"},
		{Name: "sessions", Where: "OWNER(owner)"},
	}
}
