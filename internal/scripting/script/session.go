package script

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/db"
)

// SessionOptions are the choices of Sessions. The zero value is ready to use.
type SessionOptions struct {
	Idle   time.Duration // how long a session is kept that nobody uses; 0 is 7 days
	Limit  int           // sessions one owner may have; 0 is 100
	State  int64         // largest state that is saved, in bytes; 0 is 32 MiB
	Memory int64         // about how many bytes of states are kept ready; 0 is 64 MiB
	Turn   Limits        // of one turn; zero fields are the runner's
	Node   string        // this process among several that share sessions; "" is alone with them
	Clock  clock.Clock   // nil is the machine's
	Events *event.Bus    // told of what happens to sessions; nil is fine
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

// Sessions are environments that persist between runs: what a turn leaves in its
// globals the next one finds. Their state is in the database, saved after every
// turn, and in no other place that counts; so they outlive the process. States
// used lately are also kept in memory, ready for the next turn. Nothing of them
// runs between turns. It is safe for concurrent use.
type Sessions struct {
	runner  *Runner
	db      *db.DB
	options SessionOptions
	lanes   *queue.Lanes // by id: one turn at a time, in order of arrival
	live    *liveStates
}

// OpenSessions finds the sessions in the database, whose tables it brings up to
// date.
func OpenSessions(ctx context.Context, database *db.DB, runner *Runner, o SessionOptions) (*Sessions, error) {
	if err := database.Migrate(ctx, "script", migrations); err != nil {
		return nil, err
	}
	o = o.orDefault()
	s := &Sessions{runner: runner, db: database, options: o, lanes: queue.NewLanes(queue.LaneOptions{}), live: newLiveStates(o.Memory)}
	return s, s.expire(ctx)
}

// Session is one environment.
type Session struct {
	ID       string // unguessable; whoever has it and is its owner may use it
	Owner    string // the user it belongs to; "" where users are not told apart
	Name     string // what its owner calls it; may be empty, and need not be unique
	Language string
	Limits   Limits // Time and Memory of a turn, where they are narrower than everybody's
	Turns    int64  // how often its state changed
	Size     int64  // of the saved state, in bytes
	Created  time.Time
	Used     time.Time
	Expires  time.Time // unless it is used before
}

// SessionSpec is a wish for a session.
type SessionSpec struct {
	Owner    string
	Name     string
	Language string // "" is Lua
	Limits   Limits // Time and Memory: narrower than everybody's, or zero
}

// Create makes an empty session.
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
	made, err := s.insert(ctx, sessionRow{Session: Session{Owner: want.Owner, Name: want.Name, Language: want.Language, Limits: want.Limits}})
	if err == nil {
		s.tell("created", made, false)
	}
	return made, err
}

// Fork makes a session that begins with everything another one has, and is
// independent of it from then on. An empty name is the other's.
func (s *Sessions) Fork(ctx context.Context, owner, id, name string) (forked Session, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, err := s.load(ctx, owner, id, noVersion)
		if err != nil {
			return err
		}
		if name != "" {
			row.Name = name
		}
		if forked, err = s.insert(ctx, row); err != nil {
			return err
		}
		return s.runner.inherit(ctx, "session:"+id, "session:"+forked.ID)
	})
	if err == nil {
		s.tell("forked", forked, false)
	}
	return forked, err
}

// Reset gives a session a fresh state: the globals are gone, what every script
// has is there again.
func (s *Sessions) Reset(ctx context.Context, owner, id string) (session Session, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, err := s.load(ctx, owner, id, noVersion)
		if err != nil {
			return err
		}
		row.state = nil
		session, err = s.save(ctx, row)
		return err
	})
	if err == nil {
		s.tell("reset", session, false)
	}
	return session, err
}

// Close ends a session. It waits for the turn that is running.
func (s *Sessions) Close(ctx context.Context, owner, id string) error {
	err := s.inTurn(ctx, id, func(ctx context.Context) error {
		return s.remove(ctx, owner, id)
	})
	if err == nil {
		s.tell("closed", Session{ID: id, Owner: owner}, false)
	}
	return err
}

// newSessionID draws 130 random bits.
func newSessionID() string { return "s-" + strings.ToLower(rand.Text()) }

// inTurnKey is where a context keeps the session whose turn it belongs to.
type inTurnKey struct{}

// heldTurn is a session whose turn is running, and the one it was called from.
type heldTurn struct {
	id     string
	parent *heldTurn
}

// inTurn runs f when all that came before it in the session have finished. A turn
// that asks for its own session would wait for itself, and is refused.
func (s *Sessions) inTurn(ctx context.Context, id string, f func(context.Context) error) error {
	parent, _ := ctx.Value(inTurnKey{}).(*heldTurn)
	for held := parent; held != nil; held = held.parent {
		if held.id == id {
			return fault.New(fault.Conflict, "the session is in use by the very script that asks for it").
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
