package script

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Approvals decides what scripts may do, and keeps runs that wait for somebody's
// word.
type Approvals interface {
	// Approver is for one run, whose journal so far is past; nil when nothing needs
	// approval.
	Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error)
	// Ask keeps a paused run.
	Ask(ctx context.Context, p host.Paused) (host.Pending, error)
	// Answer decides about one that was kept.
	Answer(ctx context.Context, id string, answer host.Answer) error
	// ResumeStore is where one is kept while it goes on after that.
	ResumeStore(id string) host.ResumeStore
}

// PendingError is the error of a run that waits for somebody's word. Nothing is lost:
// when the word is given, Resume goes on with it.
type PendingError struct {
	host.Pending
	host.Paused
}

// Error tells what it waits for.
func (p *PendingError) Error() string {
	return fmt.Sprintf("%s waits for approval %s until %s", p.Effect.DisplayName(), p.ID, p.Expires.UTC().Format(time.RFC3339))
}

// errand is a request as those see it who approve what it does.
func (q Request) errand(key, owner string) host.RunInfo {
	hash := q.Hash
	if hash == (cas.Ref{}) {
		hash = cas.Sum([]byte(q.Source))
	}
	return host.RunInfo{Key: key, Owner: owner, Name: q.name(), Hash: hash.String(), Language: q.language()}
}

// kept is a run as it is stored while it waits.
type kept struct {
	Source   string          `json:"source"`
	Name     string          `json:"name,omitempty"`
	Language string          `json:"language,omitempty"`
	Hash     cas.Ref         `json:"hash"`
	Creator  string          `json:"creator,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Main     bool            `json:"main,omitempty"`
	Limits   Limits          `json:"limits"`

	Session string `json:"session,omitempty"` // whose turn it is
	Turns   int64  `json:"turns,omitempty"`   // of the session then
	Journal []byte `json:"journal"`           // what it did

	Asker *principal.Principal `json:"asker,omitempty"` // whose it is; nil is the local owner's
}

// attended is a run whose effects may need approval.
type attended struct {
	runner  *Runner
	key     string // the same for every attempt
	owner   string
	session string
	turns   int64
	request Request
	journal []byte           // what was done before, by all attempts
	ledger  host.ResumeStore // where it is kept since somebody's word; nil before
	spoiled bool             // the last attempt was not all real: what it left counts for nothing
	// once runs the request with a door.
	once func(ctx context.Context, handler host.Handler) (Outcome, error)
}

// newRunKey names a run among all.
func newRunKey() string { return "run:" + strings.ToLower(rand.Text()[:16]) }

// run runs the request until it is over or waits for somebody: then the error is
// a *Pending.
func (a *attended) run(ctx context.Context) (Outcome, error) {
	who := a.request.errand(a.key, a.owner)
	for {
		past, err := host.ReadJournal(a.journal)
		if err != nil {
			return Outcome{}, err
		}
		judge, err := a.runner.options.Approvals.Approver(ctx, who, past)
		if err != nil {
			return Outcome{}, err
		}
		if judge == nil && len(past) == 0 && a.ledger == nil {
			return a.once(ctx, host.Live())
		}
		outcome, paused, err := a.attempt(ctx, who, judge, past)
		if paused == nil {
			return outcome, err
		}
		pending, err := a.runner.options.Approvals.Ask(ctx, *paused)
		if err != nil {
			return outcome, err
		}
		waits := &PendingError{pending, *paused}
		if !a.askCaller(ctx, pending, paused) {
			return outcome, waits
		}
		if _, err := a.finish(ctx, Turn{Outcome: outcome}, waits); err != nil {
			return outcome, err
		}
		a.ledger = a.runner.options.Approvals.ResumeStore(pending.ID)
	}
}

// finish keeps what became of a run that went on after somebody's word, and
// returns it as JSON.
func (a *attended) finish(ctx context.Context, done Turn, failed error) (json.RawMessage, error) {
	if a.ledger == nil {
		return nil, nil
	}
	raw, err := json.Marshal(newAftermath(done, failed))
	if err != nil {
		return nil, err
	}
	return raw, a.ledger.Finish(context.WithoutCancel(ctx), raw)
}

// attempt runs the request once, with past answered from the journal.
func (a *attended) attempt(ctx context.Context, who host.RunInfo, judge host.Approver, past []host.Step) (Outcome, *host.Paused, error) {
	recorded := recorder{then: a.ledger}
	journal := host.NewJournal(&recorded, a.key)
	if judge == nil { // nothing needs approval any more
		judge = permissive{}
	}
	gate := host.NewApproval(journal, judge, host.NewRehearsal(a.runner.options.Tools, nil))
	replay := host.NewReplay(past, gate)
	outcome, err := a.once(ctx, replay)
	if a.ledger != nil { // all that was done is known before its end is
		if problem := journal.Flush(); problem != nil {
			a.spoiled = true
			return outcome, nil, problem
		}
	}
	tail := journal.End()
	a.spoiled = replay.Err() != nil || gate.Paused() != nil
	if went := replay.Err(); went != nil {
		return outcome, nil, went
	}
	if gate.Paused() == nil || ctx.Err() != nil {
		return outcome, nil, err
	}
	a.journal = append(append(a.journal, recorded.data...), tail...)
	paused := host.NewPaused(who, gate, err == nil, outcome.Output)
	paused.Kept, err = json.Marshal(a.kept(ctx))
	return Outcome{Output: outcome.Output, Duration: outcome.Duration}, &paused, err
}

func (a *attended) kept(ctx context.Context) kept {
	q := a.request
	k := kept{
		Source: q.Source, Name: q.Name, Language: q.Language, Hash: q.Hash, Creator: q.Creator, Params: q.Params, Main: q.Main, Limits: q.Limits,
		Session: a.session, Turns: a.turns, Journal: a.journal,
	}
	if who := principal.Of(ctx); who.ID != principal.LocalID {
		k.Asker = &who
	}
	return k
}

// as returns ctx with whose run it was, with the rights they have now: whoever
// decided about it, or found it, lends it none.
func (k kept) as(ctx context.Context, r *Runner) (context.Context, error) {
	if k.Asker == nil {
		return principal.With(ctx, principal.Local()), nil
	}
	who := *k.Asker
	if r.options.CurrentPrincipal != nil {
		var err error
		if who, err = r.options.CurrentPrincipal(ctx, who); err != nil {
			return ctx, err
		}
	}
	return principal.With(ctx, who), nil
}

// permissive allows everything.
type permissive struct{}

func (permissive) Decide(context.Context, host.Effect) (host.Decision, error) { return host.Allow, nil }

// recorder keeps a journal in memory, and where it survives the process when the
// run is one that was promised to.
type recorder struct {
	data []byte
	then host.ResumeStore // may be nil
}

func (r *recorder) Record(data []byte) error {
	r.data = append(r.data, data...)
	if r.then == nil {
		return nil
	}
	return r.then.Record(data)
}

// Resume goes on with a run that was kept while it waited, under the approval of
// that id: where it stopped, or where a process that died had come. q tells who
// waits now. It returns what became of the run, an Aftermath as JSON, which is
// kept; the error is that it could not be.
func (s *Sessions) Resume(ctx context.Context, id string, who host.RunInfo, keptRun []byte, q Request) (json.RawMessage, error) {
	ctx, _ = db.WaitForDatabase(ctx) // somebody was promised that it goes on
	var k kept
	if err := json.NewDecoder(bytes.NewReader(keptRun)).Decode(&k); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "read a run that waited for approval")
	}
	q.Source, q.Name, q.Language, q.Hash, q.Creator = k.Source, k.Name, k.Language, k.Hash, k.Creator
	q.Params, q.Main, q.Limits = k.Params, k.Main, k.Limits
	a := &attended{
		runner: s.runner, key: who.Key, owner: who.Owner, session: k.Session, turns: k.Turns, request: q,
		journal: k.Journal, ledger: s.runner.options.Approvals.ResumeStore(id),
	}
	records, err := a.ledger.Past(ctx)
	if err != nil {
		return nil, err
	}
	a.journal = append(a.journal, bytes.Join(records, nil)...)
	var done Turn
	as, failed := k.as(ctx, s.runner)
	if failed == nil {
		done, failed = s.goOn(as, a)
	}
	if ctx.Err() != nil { // stopped: it goes on later
		return nil, context.Cause(ctx)
	}
	return a.finish(ctx, done, failed)
}

// goOn runs what was kept, in its session if it is a turn of one.
func (s *Sessions) goOn(ctx context.Context, a *attended) (Turn, error) {
	if a.session != "" {
		return s.attend(ctx, a, true)
	}
	a.once = func(ctx context.Context, handler host.Handler) (Outcome, error) {
		q := a.request
		q.Handler = handler
		return s.runner.run(ctx, q)
	}
	outcome, err := a.run(ctx)
	return Turn{Outcome: outcome}, err
}

// wentOn tells that a session is not where a turn stopped.
func wentOn(id string) error {
	return fault.New(fault.Conflict, "session %s went on while the turn waited for approval", id).
		WithHint("run the turn again; what it did before it paused is done")
}
