package approval

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/delivery"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options are a store's options. The zero value is ready to use.
type Options struct {
	Policy Policy
	Expire time.Duration // a request without a decision is denied after this time; 0 is 7 days
	Keep   time.Duration // how long decided approvals are stored; 0 is 30 days
	// Nodes means that other processes use the same tables and notify each other of
	// decisions: waiting callers wake at once, and only the deciding process publishes
	// the event.
	Nodes  bool
	People People // whose roles count; nil: nobody has any
	// Alone reports whether one person uses the server, who decides about their own
	// requests; nil means yes.
	Alone func(ctx context.Context) bool
	// Webhook is the address that is told of requests, by Deliveries; empty: nobody is.
	Webhook    string
	Deliveries *delivery.Store
	// Mail tells people of requests that need their role; nil: nobody is told.
	Mail   *Mail
	Events *event.Bus                                                       // may be nil
	Audit  func(ctx context.Context, action, subject string, detail []byte) // records decisions; may be nil
	// Real returns the tool that a caller's name stands for; nil: all callers have the same names.
	Real func(ctx context.Context, ref tool.Ref) tool.Ref
	// Plan makes the plan of a run again that waits; nil: plans stay as they were made.
	Plan  func(ctx context.Context, a *Approval) (host.Plan, error)
	Clock clock.Clock  // nil is the machine's
	Log   *slog.Logger // nil discards
}

func (o Options) orDefault() Options {
	if o.Expire == 0 {
		o.Expire = 7 * 24 * time.Hour
	}
	if o.Keep == 0 {
		o.Keep = 30 * 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store has the approvals. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	options Options
	process string // id of this process as the carrier of runs

	life context.Context // of records, which outlive their callers; ends with Close
	end  context.CancelFunc

	mu      sync.Mutex
	waiting map[string][]chan struct{} // by approval: closed when it is decided
	policy  Policy
}

// Open opens the store in a database and brings its tables up to date.
func Open(ctx context.Context, database *db.DB, o Options) (*Store, error) {
	if err := database.Migrate(ctx, "approval", Migrations); err != nil {
		return nil, err
	}
	o = o.orDefault()
	s := &Store{db: database, options: o, process: newID("p-"), waiting: map[string][]chan struct{}{}, policy: o.Policy}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// SetPolicy replaces the policy for runs that start from now on.
func (s *Store) SetPolicy(p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy = p
}

// Policy returns the current policy.
func (s *Store) Policy() Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

// Ask stores a paused run until there is a decision. A second request of a run about the
// same effect returns the first one.
func (s *Store) Ask(ctx context.Context, p host.Paused) (host.Pending, error) {
	subject, space := s.subjectOf(ctx, p.Effect)
	now, who := s.now(), principal.Of(ctx)
	demand, _ := s.Policy().demand(ctx, p.Effect, subject, space)
	a := Approval{
		ID: newID(IDPrefix), RunInfo: p.RunInfo, Subject: subject, Space: space, State: Pending,
		Plan: p.Plan, Certain: p.Certain, Complete: p.Complete, Incomplete: p.Incomplete, Output: p.Output, Resume: p.ResumeState,
		Created: now, Expires: now.Add(s.options.Expire),
		Asker: partyOf(who), Org: who.ActingOrg(), Role: demand.Role, Needed: max(demand.Count, 1),
	}
	a.Asker.Agent = p.Agent
	if a.Owner == "" && who.ID != principal.LocalID {
		a.Owner = who.ID
	}
	before, err := s.insert(ctx, a)
	if err != nil {
		return host.Pending{}, fault.Wrap(fault.Internal, err, "store a run that waits for approval")
	}
	if before != nil {
		return s.pending(ctx, before), nil
	}
	if s.options.Webhook != "" {
		s.options.Deliveries.Wake()
	}
	s.publish(ctx, &a, Requested{ID: a.ID, Run: a.Key, Name: a.Name, Owner: a.Owner, Subject: subject, Entries: len(a.Plan), Role: a.Role, Needed: a.Needed})
	return s.pending(ctx, &a), nil
}

func (s *Store) pending(ctx context.Context, a *Approval) host.Pending {
	return host.Pending{ID: a.ID, Expires: a.Expires, Others: a.State == Pending && s.refusal(asked(ctx), a) != nil}
}

// Asked returns the request of a run that is not decided yet; ok is false if there is
// none.
func (s *Store) Asked(ctx context.Context, run string) (pending host.Pending, ok bool, err error) {
	a, ok, err := s.PendingOf(ctx, run)
	if err != nil || !ok {
		return host.Pending{}, false, err
	}
	return s.pending(ctx, &a), true, nil
}

// Withdraw withdraws the pending approvals of a run that no longer waits.
func (s *Store) Withdraw(ctx context.Context, run string) error {
	gone, err := s.withdraw(ctx, run)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "withdraw an approval")
	}
	for _, a := range gone {
		s.announce(ctx, a)
	}
	return nil
}

// announce wakes the callers that wait for an approval and publishes the event.
func (s *Store) announce(ctx context.Context, a Approval) {
	s.wake(a.ID)
	s.publishSettled(ctx, a)
}

func (s *Store) wake(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, woke := range s.waiting[id] {
		close(woke)
	}
	delete(s.waiting, id)
}

func (s *Store) publishSettled(ctx context.Context, a Approval) {
	s.publish(ctx, &a, Settled{ID: a.ID, Run: a.Key, Subject: a.Subject, State: a.State, By: a.By})
}

// Await waits until an approval is no longer pending.
func (s *Store) Await(ctx context.Context, id string) error {
	woke := make(chan struct{})
	s.mu.Lock()
	s.waiting[id] = append(s.waiting[id], woke)
	s.mu.Unlock()
	a, err := s.load(ctx, id) // it may have been decided before we waited
	if err != nil || a.State != Pending {
		s.forgetWaiter(id, woke)
		return err
	}
	select {
	case <-woke:
		return nil
	case <-ctx.Done():
		s.forgetWaiter(id, woke)
		return context.Cause(ctx)
	}
}

// Newest returns the latest request of the run of the principal of ctx that asked for an
// approval: a run can ask several times.
func (s *Store) Newest(ctx context.Context, id string) (Approval, error) {
	a, err := s.load(ctx, id)
	if err != nil {
		return a, err
	}
	if !a.Asker.is(partyOf(principal.Of(ctx))) {
		return Approval{}, fault.New(fault.NotFound, "no approval %s", id)
	}
	return s.latestOf(ctx, a.Key)
}

// StoredFor returns how long after its creation a decided approval is stored.
func (s *Store) StoredFor(a *Approval) time.Duration {
	return a.Decided.Sub(a.Created) + s.options.Keep
}

// AwaitOutcome waits until the run of the principal of ctx has ended that waits for an
// approval. The outcome may be that it waits for another one.
func (s *Store) AwaitOutcome(ctx context.Context, id string) (Approval, error) {
	for {
		woke := make(chan struct{})
		s.mu.Lock()
		s.waiting[id] = append(s.waiting[id], woke)
		s.mu.Unlock()
		a, err := s.load(ctx, id)
		if err == nil && !a.Asker.is(partyOf(principal.Of(ctx))) {
			err = fault.New(fault.NotFound, "no approval %s", id)
		}
		if err != nil || a.Outcome != nil || a.State == Withdrawn {
			s.forgetWaiter(id, woke)
			return a, err
		}
		select {
		case <-woke:
		case <-ctx.Done():
			s.forgetWaiter(id, woke)
			return a, context.Cause(ctx)
		}
	}
}

func (s *Store) forgetWaiter(id string, woke chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []chan struct{}
	for _, one := range s.waiting[id] {
		if one != woke {
			left = append(left, one)
		}
	}
	if len(left) == 0 {
		delete(s.waiting, id)
		return
	}
	s.waiting[id] = left
}

// Topic is where processes notify each other of decisions.
const Topic = "approvals"

// watchInterval is how often Watch looks for expired requests, for runs to take over, and
// for decisions of processes that cannot notify this one.
const watchInterval = 2 * time.Second

// Watch runs these checks until ctx ends. It calls goOn for each run to take over, in
// a goroutine of its own. If goOn is nil, other processes take the runs over.
func (s *Store) Watch(ctx context.Context, goOn func(context.Context, Approval)) {
	var carried sync.WaitGroup
	defer carried.Wait()
	if s.options.Nodes {
		carried.Go(func() { s.listen(ctx) })
	}
	for {
		s.warn(ctx, "approvals not checked", s.tidy(ctx))
		s.warn(ctx, "mails of approvals not sent", s.sendMails(ctx, &carried))
		if goOn != nil {
			orphans, err := s.orphans(ctx)
			s.warn(ctx, "approved runs not found", err)
			for _, a := range orphans {
				carried.Go(func() { goOn(ctx, a) })
			}
		}
		if s.options.Clock.Sleep(ctx, watchInterval) != nil {
			return
		}
	}
}

// warn logs what did not work, unless ctx has ended.
func (s *Store) warn(ctx context.Context, problem string, err error) {
	if err != nil && ctx.Err() == nil {
		s.options.Log.WarnContext(ctx, "approvals are incomplete for now", "problem", problem, "error", err)
	}
}

// listen wakes callers that wait for a decision on another node.
func (s *Store) listen(ctx context.Context) {
	_ = s.db.Listen(ctx, Topic, func(db.Notification) { // it ends with ctx
		s.warn(ctx, "decisions of other processes not read", s.wakeDecided(ctx))
	})
}

func (s *Store) wakeDecided(ctx context.Context) error {
	decided, err := s.decidedElsewhere(ctx)
	for _, a := range decided {
		s.wake(a.ID)
		if !s.options.Nodes { // the deciding process has published the event
			s.publishSettled(ctx, a)
		}
	}
	return err
}

func (s *Store) tidy(ctx context.Context) error {
	over, err := s.expire(ctx, s.now())
	if err != nil {
		return err
	}
	for _, a := range over {
		s.announce(ctx, a)
	}
	return errors.Join(s.wakeDecided(ctx), s.renew(ctx))
}

func (s *Store) now() time.Time { return s.options.Clock.Now().UTC() }
