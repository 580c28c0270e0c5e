package script

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// SessionOptions are the options of Sessions. The zero value is ready to use.
type SessionOptions struct {
	Idle   time.Duration // how long an unused session is stored; 0 means 7 days
	Limit  int           // sessions per owner; 0 means 100
	State  int64         // largest state that is saved, in bytes; 0 means 32 MiB
	Memory int64         // approximate bytes of states cached in memory; 0 means 64 MiB
	Turn   Limits        // of one turn; zero fields mean the runner's
	Node   string        // this process, if several share the database; "" if not
	Clock  clock.Clock   // nil means the system clock
	Events *event.Bus    // receives SessionEvents; may be nil
	// Shares says what owners share with others; nil: nothing. NameOf then returns the name
	// of an owner for people.
	Shares principal.Shares
	NameOf func(owner string) string
}

func (o SessionOptions) orDefault() SessionOptions {
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
	return o
}

// Sessions are environments that persist between runs: a turn finds the globals that
// earlier turns set. The state is saved to the database after every turn, so that it
// survives the process. Recently used states are also cached in memory. Nothing runs
// between turns. It is safe for concurrent use.
type Sessions struct {
	runner  *Runner
	db      *db.DB
	options SessionOptions
	lanes   *queue.Lanes // by id: one turn at a time, in order of arrival
	live    *liveStates
	runs    runCounts
}

// OpenSessions opens the sessions in the database and migrates its tables.
func OpenSessions(ctx context.Context, database *db.DB, runner *Runner, o SessionOptions) (*Sessions, error) {
	if err := database.Migrate(ctx, "script", Migrations); err != nil {
		return nil, err
	}
	o = o.orDefault()
	share, _ := runner.options.Memory.Open(ctx, "", 0)
	s := &Sessions{runner: runner, db: database, options: o, lanes: queue.NewLanes(queue.LaneOptions{}), live: newLiveStates(o.Memory, share.Count)}
	return s, s.expire(ctx)
}

// Session is one environment.
type Session struct {
	ID       string // unguessable; its owner may use it
	Owner    string // the user it belongs to; "" where users are not distinguished
	Org      string // the organisation it was made in
	Name     string // chosen by the owner; may be empty. The first session of a name can be used by it
	Language string
	Limits   Limits // Time and Memory of a turn, if narrower than the default
	Turns    int64  // how often its state changed: the version of the state
	Runs     int64  // turns, also those that changed nothing
	Size     int64  // of the saved state, in bytes
	Created  time.Time
	Used     time.Time
	Expires  time.Time // unless it is used before
	// Sharer is the name of the owner if the session is somebody else's, and Shared what
	// they permit.
	Sharer string
	Shared principal.Level
}

// SessionSpec describes a session to create.
type SessionSpec struct {
	Owner    string
	Name     string
	Language string // "" means Lua
	Limits   Limits // Time and Memory, narrower than the default, or zero

	named bool // it must be usable by its name
}

// Create creates an empty session.
func (s *Sessions) Create(ctx context.Context, want SessionSpec) (Session, error) {
	if want.Language == "" {
		want.Language = Lua
	}
	if _, err := s.runner.engineFor(Request{Language: want.Language}); err != nil {
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
		return s.runner.inherit(ctx, "session:"+id, "session:"+forked.ID)
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
		if row.Language == JavaScript {
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

// newSessionID returns an id with 130 random bits.
func newSessionID() string { return idPrefix + strings.ToLower(rand.Text()) }

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
