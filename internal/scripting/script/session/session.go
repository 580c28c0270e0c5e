// Package session keeps the states of scripts between runs: a turn of a session finds the
// globals that earlier turns set.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/memory"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/db"
)

// Options are the options of Sessions. The zero value is ready to use.
type Options struct {
	Idle   time.Duration // how long an unused session is stored; 0 means 7 days
	Limit  int           // sessions per owner; 0 means 100
	State  int64         // largest state that is saved, in bytes; 0 means 32 MiB
	Memory int64         // approximate bytes of states cached in memory; 0 means 64 MiB
	Turn   script.Limits // of one turn; zero fields mean the runner's
	Node   string        // this process, if several share the database; "" if not
	Clock  clock.Clock   // nil means the system clock
	Events *event.Bus    // receives Events; may be nil
	Log    *slog.Logger  // nil discards
	Pool   *memory.Pool  // counts the cached states; may be nil
	// Shares says what owners share with others; nil: nothing. NameOf then returns the name
	// of an owner for people.
	Shares principal.Shares
	NameOf func(owner string) string
}

func (o Options) orDefault() Options {
	if o.Idle == 0 {
		o.Idle = 7 * 24 * time.Hour
	}
	if o.Limit == 0 {
		o.Limit = 100
	}
	if o.State == 0 {
		o.State = 32 << 20
	}
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Sessions are environments that persist between runs: a turn finds the globals that
// earlier turns set. The state is saved to the database after every turn, so that it
// survives the process. Recently used states are also cached in memory. Nothing runs
// between turns. It is safe for concurrent use.
type Sessions struct {
	runner  *script.Runner
	db      *db.DB
	options Options
	lanes   *queue.Lanes // by id: one turn at a time, in order of arrival
	live    *liveStates
	runs    runCounts
}

// Open opens the sessions in the database and migrates its tables.
func Open(ctx context.Context, database *db.DB, runner *script.Runner, o Options) (*Sessions, error) {
	if err := database.Migrate(ctx, script.MigrationSet, script.Migrations); err != nil {
		return nil, err
	}
	o = o.orDefault()
	count := func(int64) {}
	if o.Pool != nil {
		share, _ := o.Pool.Open(ctx, "", 0)
		count = share.Count
	}
	s := &Sessions{runner: runner, db: database, options: o, lanes: queue.NewLanes(queue.LaneOptions{}), live: newLiveStates(o.Memory, count)}
	return s, s.expire(ctx)
}

// Session is one environment.
type Session struct {
	ID       string // unguessable; its owner may use it
	Owner    string // the user it belongs to; "" where users are not distinguished
	Org      string // the organisation it was made in
	Name     string // chosen by the owner; may be empty. The first session of a name can be used by it
	Language string
	Limits   script.Limits // Time and Memory of a turn, if narrower than the default
	Turns    int64         // how often its state changed: the version of the state
	Runs     int64         // turns, also those that changed nothing
	Size     int64         // of the saved state, in bytes
	Created  time.Time
	Used     time.Time
	Expires  time.Time // unless it is used before
	// Sharer is the name of the owner if the session is somebody else's, and Shared what
	// they permit.
	Sharer string
	Shared principal.Level
}

// Spec describes a session to create.
type Spec struct {
	Owner    string
	Name     string
	Language string        // "" means Lua
	Limits   script.Limits // Time and Memory, narrower than the default, or zero

	named bool // it must be usable by its name
}

// Create creates an empty session.
func (s *Sessions) Create(ctx context.Context, want Spec) (Session, error) {
	if want.Language == "" {
		want.Language = script.Lua
	}
	if err := s.runner.CheckLanguage(want.Language); err != nil {
		return Session{}, err
	}
	if want.Limits.Time < 0 || want.Limits.Memory < 0 {
		return Session{}, fault.New(fault.InvalidParams, "a session's limits cannot be negative")
	}
	row := sessionRow{Session: Session{Owner: want.Owner, Name: want.Name, Language: want.Language, Limits: want.Limits}}
	if isSessionName(want.Name) {
		row.handle = sql.NullString{String: want.Name, Valid: true}
	}
	made, err := s.insert(ctx, row)
	if errors.Is(err, errNameTaken) && !want.named {
		row.handle = sql.NullString{}
		made, err = s.insert(ctx, row)
	}
	if err == nil {
		s.publish(ctx, "created", made, false)
	}
	return made, err
}

// Fork creates a session with a copy of another one's state. An empty name means the
// other's.
func (s *Sessions) Fork(ctx context.Context, owner, ref, name string) (forked Session, err error) {
	id, of, err := s.shared(ctx, owner, ref, principal.Use)
	if err != nil {
		return forked, err
	}
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, err := s.load(ctx, of, id, noVersion)
		if err != nil {
			return err
		}
		row.Owner = owner
		row.Runs, row.handle, row.origin = s.runs.of(id, row.Runs), sql.NullString{}, id
		if name != "" {
			row.Name = name
		}
		if forked, err = s.insert(ctx, row); err != nil {
			return err
		}
		return s.runner.InheritFlow(ctx, "session:"+id, "session:"+forked.ID)
	})
	if err == nil {
		s.publish(ctx, "forked", forked, false)
	}
	return forked, err
}

// Reset gives a session a fresh state.
func (s *Sessions) Reset(ctx context.Context, owner, ref string) (session Session, err error) {
	id, owner, err := s.shared(ctx, owner, ref, principal.Edit)
	if err != nil {
		return session, err
	}
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, err := s.load(ctx, owner, id, noVersion)
		if err != nil {
			return err
		}
		row.state, row.Runs = nil, s.runs.of(id, row.Runs)
		if row.Language == script.JavaScript {
			row.past = &pastTurn{version: row.Turns + 1}
		}
		session, err = s.save(ctx, row)
		return err
	})
	if err == nil {
		s.publish(ctx, "reset", session, false)
	}
	return session, err
}

// Close ends a session. It waits for a running turn.
func (s *Sessions) Close(ctx context.Context, owner, ref string) error {
	id, owner, err := s.shared(ctx, owner, ref, principal.Edit)
	if err != nil {
		return err
	}
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		return s.remove(ctx, owner, id)
	})
	if err == nil {
		s.runs.forget(id)
		s.publish(ctx, "closed", Session{ID: id, Owner: owner}, false)
	}
	return err
}

// newID returns an id with 130 random bits.
func newID() string { return idPrefix + strings.ToLower(rand.Text()) }

// inTurnKey is the context key of the session whose turn is running.
type inTurnKey struct{}

// heldTurn is a session whose turn is running, and the turn it was called from.
type heldTurn struct {
	id     string
	parent *heldTurn
}

// inTurn runs f after all earlier turns of the session. A turn that asks for its own
// session would wait for itself, and is refused.
func (s *Sessions) inTurn(ctx context.Context, id string, f func(context.Context) error) error {
	parent, _ := ctx.Value(inTurnKey{}).(*heldTurn)
	for held := parent; held != nil; held = held.parent {
		if held.id == id {
			return fault.New(fault.Conflict, "the session is already in use by the calling script").
				WithHint("call the code directly: it shares the script's globals already")
		}
	}
	return s.lanes.Do(ctx, id, func(ctx context.Context) error {
		release, err := s.hold(ctx, id)
		if err != nil {
			return err
		}
		defer release()
		return f(context.WithValue(ctx, inTurnKey{}, &heldTurn{id, parent}))
	})
}

// A session can be used by its id, which is unguessable, or by its name, which only its
// owner can use. A session that is used by a name that does not exist yet is created.

// idPrefix begins every id, and no name.
const idPrefix = "s-"

var sessionName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}$`)

// isSessionName reports whether a text can be used instead of an id.
func isSessionName(text string) bool {
	return !strings.HasPrefix(text, idPrefix) && sessionName().MatchString(text)
}

// idOf returns the id of a session, given its id or its name.
func (s *Sessions) idOf(ctx context.Context, owner, ref string) (id string, err error) {
	if !isSessionName(ref) {
		return ref, nil // the id of a session, or of none
	}
	err = s.db.QueryRow(ctx, `SELECT id FROM sessions WHERE owner = $1 AND handle = $2 AND used > $3`, owner, ref, s.oldest()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", errNoSession()
	}
	return id, err
}

// idFor is idOf, but creates a session that is named for the first time.
func (s *Sessions) idFor(ctx context.Context, owner, ref, language string) (string, error) {
	id, err := s.idOf(ctx, owner, ref)
	if fault.CodeOf(err) != fault.NotFound {
		return id, err
	}
	made, err := s.Create(ctx, Spec{Owner: owner, Name: ref, Language: language, named: true})
	if errors.Is(err, errNameTaken) { // meanwhile
		return s.idOf(ctx, owner, ref)
	}
	return made.ID, err
}

// errNameTaken is returned if another session of the owner has the name.
var errNameTaken = fault.New(fault.Conflict, "another session has this name")

// The events of sessions. The id of a session gives access to it, so events have only
// its first characters.

// Event is published when a session changes.
type Event struct {
	kind     string
	Session  string `json:"session"`
	Owner    string `json:"owner,omitempty"`
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
	Turns    int64  `json:"turns"`
	Failed   bool   `json:"failed,omitempty"` // the turn failed
}

// EventType is "session.created", "session.forked", "session.used",
// "session.reset" or "session.closed".
func (n Event) EventType() string { return "session." + n.kind }

// EventKey is the beginning of the session's id.
func (n Event) EventKey() string { return n.Session }

// shownID is the number of characters of an id in events.
const shownID = 8

// publish publishes an event of a session.
func (s *Sessions) publish(ctx context.Context, kind string, about Session, failed bool) {
	s.options.Events.PublishFor(principal.OwnerOf(ctx), Event{
		kind: kind, Session: about.ID[:min(shownID, len(about.ID))], Owner: about.Owner, Name: about.Name,
		Language: about.Language, Turns: about.Runs, Failed: failed,
	})
}

// Nobody runs code in a session of somebody else, whatever is shared: functions that they
// leave there would run with the rights of the owner in the owner's next turn. They fork it,
// and go on in their own copy.

// shared returns the id of a session and its owner, if the caller may do something with it.
// For sessions that are not shared the owner is the caller, for whom they do not exist.
func (s *Sessions) shared(ctx context.Context, caller, ref string, wanted principal.Level) (id, owner string, err error) {
	if id, err = s.idOf(ctx, caller, ref); err != nil || s.options.Shares == nil {
		return id, caller, err
	}
	one, err := s.find(ctx, id)
	owner = one.Owner
	if errors.Is(err, sql.ErrNoRows) || err == nil && owner == caller {
		return id, caller, nil
	}
	if err != nil {
		return id, caller, err
	}
	level, err := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Session, id)
	switch {
	case err != nil || level == principal.Nothing:
		return id, caller, err
	case !level.Permits(wanted):
		name := s.options.NameOf(owner)
		return id, caller, fault.New(fault.Denied, "the session belongs to %s, who shares it with you to %s", name, level).
			WithHint("ask %s to share it with you to %s", name, wanted)
	}
	return id, owner, nil
}

// Permits returns why the caller may not do something with a session; nil if it may.
func (s *Sessions) Permits(ctx context.Context, caller, ref string, wanted principal.Level) error {
	id, owner, err := s.shared(ctx, caller, ref, wanted)
	if err == nil {
		_, err = s.load(ctx, owner, id, noVersion)
	}
	return err
}

// explain says why code does not run in a session that somebody else shares.
func (s *Sessions) explain(ctx context.Context, id string, err error) error {
	if s.options.Shares == nil || fault.CodeOf(err) != fault.NotFound {
		return err
	}
	level, problem := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Session, id)
	if problem != nil || level == principal.Nothing {
		return err // as it is: callers look at its type
	}
	return fault.New(fault.Denied, "the session belongs to somebody else").
		WithHint("session_fork makes a copy of your own, if its owner shares it with you to use it")
}

// sharedSessions returns the sessions that others share with the caller.
func (s *Sessions) sharedSessions(ctx context.Context, caller string) (list []Session, err error) {
	if s.options.Shares == nil {
		return nil, nil
	}
	who := principal.Of(ctx)
	ids, err := s.options.Shares.IDs(ctx, who, principal.Session)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		one, err := s.find(ctx, id)
		if errors.Is(err, sql.ErrNoRows) || err == nil && one.Owner == caller {
			continue
		}
		if err == nil {
			one.Sharer = s.options.NameOf(one.Owner)
			one.Shared, err = s.options.Shares.Level(ctx, who, principal.Session, id)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// find reads a session without its state, whoever owns it.
func (s *Sessions) find(ctx context.Context, id string) (one Session, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		one, err = s.scan(tx.QueryRow(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = $1 AND used > $2`, id, s.oldest()))
		return err
	})
	return one, err
}

// SharedSession finds a session, by its id or the caller's name for it, for those who share
// it.
func (s *Sessions) SharedSession(ctx context.Context, ref string) (principal.Thing, error) {
	caller := principal.Of(ctx).ID
	if caller == principal.LocalID {
		caller = ""
	}
	id, err := s.idOf(ctx, caller, ref)
	if err != nil {
		return principal.Thing{}, err
	}
	one, err := s.find(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return principal.Thing{}, errNoSession()
	}
	return principal.Thing{ID: id, Owner: principal.Owner{ID: cmp.Or(one.Owner, principal.LocalID), Org: one.Org}, Title: one.Name}, err
}
