package script

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Approvals decides which effects of scripts need approval, and stores runs that wait
// for it.
type Approvals interface {
	// Approver returns the Approver of one run, whose journal so far is past; nil if
	// nothing needs approval.
	Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error)
	// Ask stores a paused run as a request for approval.
	Ask(ctx context.Context, p host.Paused) (host.Pending, error)
	// Answer decides a request.
	Answer(ctx context.Context, id string, answer host.Answer) error
	// ResumeStore returns the store of a run that resumes after its approval.
	ResumeStore(id string) host.ResumeStore
}

// PendingError is the error of a run that waits for approval. After the decision, Resume
// continues it.
type PendingError struct {
	host.Pending
	host.Paused
}

// Error says what it waits for.
func (p *PendingError) Error() string {
	return fmt.Sprintf("%s waits for approval %s until %s", p.Effect.DisplayName(), p.ID, p.Expires.UTC().Format(time.RFC3339))
}

// runInfo describes the run to those who approve its effects.
func (q Request) runInfo(key, owner string) host.RunInfo {
	hash := q.Hash
	if hash == (cas.Ref{}) {
		hash = cas.Sum([]byte(q.Source))
	}
	who := host.RunInfo{Key: key, Owner: owner, Name: q.name(), Hash: hash.String(), Language: q.language()}
	if q.Caller != nil {
		who.Agent = q.Caller.Agent
	}
	return who
}

// storedRun is a run as it is stored while it waits.
type storedRun struct {
	Source   string          `json:"source"`
	Name     string          `json:"name,omitempty"`
	Language string          `json:"language,omitempty"`
	Hash     cas.Ref         `json:"hash"`
	Creator  string          `json:"creator,omitempty"`
	Org      string          `json:"org,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
	Main     bool            `json:"main,omitempty"`
	Limits   Limits          `json:"limits"`

	Session string `json:"session,omitempty"` // the session it is a turn of
	Turns   int64  `json:"turns,omitempty"`   // of the session at that time
	Journal []byte `json:"journal"`           // its effects so far

	Asker *principal.Principal `json:"asker,omitempty"` // whose run it is; nil means the local owner's
}

// approvedRun is a run whose effects may need approval.
type approvedRun struct {
	runner      *Runner
	key         string // the same for every attempt
	owner       string
	session     string
	turns       int64
	request     Request
	journal     []byte           // effects of all earlier attempts
	resumeStore host.ResumeStore // where the run is recorded after its approval; nil before
	rehearsed   bool             // the last attempt was partly rehearsed, so its state must not be saved
	// once runs the request with a Handler.
	once func(ctx context.Context, handler host.Handler) (Outcome, error)
}

// newRunKey returns a unique name for a run.
func newRunKey() string { return "run:" + strings.ToLower(rand.Text()[:16]) }

// run runs the request until it ends or waits for approval: then the error is a
// *PendingError.
func (a *approvedRun) run(ctx context.Context) (Outcome, error) {
	who := a.request.runInfo(a.key, a.owner)
	for {
		past, err := host.ReadJournal(a.journal)
		if err != nil {
			return Outcome{}, err
		}
		approver, err := a.runner.options.Approvals.Approver(ctx, who, past)
		if err != nil {
			return Outcome{}, err
		}
		if approver == nil && len(past) == 0 && a.resumeStore == nil {
			return a.once(ctx, host.Live())
		}
		outcome, paused, err := a.attempt(ctx, who, approver, past)
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
		a.resumeStore = a.runner.options.Approvals.ResumeStore(pending.ID)
	}
}

// finish stores the outcome of a run that resumed after its approval, and returns it as
// JSON.
func (a *approvedRun) finish(ctx context.Context, done Turn, failed error) (json.RawMessage, error) {
	if a.resumeStore == nil {
		return nil, nil
	}
	outcome := newResumeResult(done, failed)
	if a.request.Language == directCall {
		outcome.Made, outcome.Result = outcome.Result, nil
	}
	raw, err := json.Marshal(outcome)
	if err != nil {
		return nil, err
	}
	return raw, a.resumeStore.Finish(context.WithoutCancel(ctx), raw)
}

// attempt runs the request once. Effects in past are answered from the journal.
func (a *approvedRun) attempt(ctx context.Context, who host.RunInfo, approver host.Approver, past []host.Step) (Outcome, *host.Paused, error) {
	recorded := recorder{then: a.resumeStore}
	journal := host.NewJournal(&recorded, a.key)
	if approver == nil { // nothing needs approval any more
		approver = allowAll{}
	}
	approval := host.NewApproval(journal, approver, host.NewRehearsal(a.runner.options.Tools, nil))
	replay := host.NewReplay(past, approval)
	outcome, err := a.once(ctx, replay)
	if a.resumeStore != nil { // every effect must be recorded before the end of the run is
		if problem := journal.Flush(); problem != nil {
			a.rehearsed = true
			return outcome, nil, problem
		}
	}
	tail := journal.End()
	a.rehearsed = replay.Err() != nil || approval.Paused() != nil
	if went := replay.Err(); went != nil {
		return outcome, nil, went
	}
	if approval.Paused() == nil || ctx.Err() != nil {
		return outcome, nil, err
	}
	a.journal = append(append(a.journal, recorded.data...), tail...)
	paused := host.NewPaused(who, approval, err, outcome.Output)
	paused.ResumeState, err = json.Marshal(a.storedRun(ctx))
	return Outcome{Output: outcome.Output, Duration: outcome.Duration}, &paused, err
}

func (a *approvedRun) storedRun(ctx context.Context) storedRun {
	q := a.request
	k := storedRun{
		Source: q.Source, Name: q.Name, Language: q.Language, Hash: q.Hash, Creator: q.Creator, Org: q.Org, Params: q.Params, Main: q.Main, Limits: q.Limits,
		Session: a.session, Turns: a.turns, Journal: a.journal,
	}
	if who := principal.Of(ctx); who.ID != principal.LocalID {
		k.Asker = &who
	}
	return k
}

// as returns ctx with the principal of the run and its current rights. The rights of
// whoever decided or resumed it do not apply.
func (k storedRun) as(ctx context.Context, r *Runner) (context.Context, error) {
	if r.options.Flow != nil { // whoever decides has read the plan
		ctx = r.options.Flow.Detach(ctx)
	}
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
	ctx = principal.With(ctx, who)
	if r.options.Scope != nil {
		return r.options.Scope(ctx)
	}
	return ctx, nil
}

// allowAll allows everything.
type allowAll struct{}

func (allowAll) Decide(context.Context, host.Effect) (host.Decision, error) { return host.Allow, nil }

// recorder stores a journal in memory and, for a run that resumed after its approval,
// also in its ResumeStore.
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

// Resume continues a run that was stored while it waited for the approval with that id,
// after the last recorded effect. q has the caller waiting now. It stores the outcome
// and returns it, a ResumeResult as JSON; the error is that it could not be stored.
func (s *Sessions) Resume(ctx context.Context, id string, who host.RunInfo, stored []byte, q Request) (json.RawMessage, error) {
	ctx, _ = db.WaitForDatabase(ctx) // an approved run must finish
	k, a, err := s.readStored(who, stored, q)
	if err != nil {
		return nil, err
	}
	a.resumeStore = s.runner.options.Approvals.ResumeStore(id)
	records, err := a.resumeStore.Past(ctx)
	if err != nil {
		return nil, err
	}
	a.journal = append(a.journal, bytes.Join(records, nil)...)
	var done Turn
	as, failed := k.as(ctx, s.runner)
	if failed == nil {
		done, failed = s.runStored(as, a)
	}
	if ctx.Err() != nil { // stopped: it resumes later
		return nil, context.Cause(ctx)
	}
	return a.finish(ctx, done, failed)
}

// readStored reads a run that waits for approval.
func (s *Sessions) readStored(who host.RunInfo, stored []byte, q Request) (storedRun, *approvedRun, error) {
	var k storedRun
	if err := json.NewDecoder(bytes.NewReader(stored)).Decode(&k); err != nil {
		return k, nil, fault.Wrap(fault.Internal, err, "read a run that waited for approval")
	}
	q.Source, q.Name, q.Language, q.Hash, q.Creator = k.Source, k.Name, k.Language, k.Hash, k.Creator
	q.Params, q.Main, q.Limits, q.Org = k.Params, k.Main, k.Limits, k.Org
	q.AwaitTools = s.runner.options.AwaitTools
	return k, &approvedRun{
		runner: s.runner, key: who.Key, owner: who.Owner, session: k.Session, turns: k.Turns, request: q, journal: k.Journal,
	}, nil
}

// Plan makes the plan of a run again that waits for approval: from its journal on, nothing
// is carried out.
func (s *Sessions) Plan(ctx context.Context, who host.RunInfo, stored []byte) (host.Plan, error) {
	k, a, err := s.readStored(who, stored, Request{})
	if err != nil {
		return host.Plan{}, err
	}
	past, err := host.ReadJournal(k.Journal)
	if err != nil {
		return host.Plan{}, err
	}
	if ctx, err = k.as(ctx, s.runner); err != nil {
		return host.Plan{}, err
	}
	rehearsal := host.NewRehearsal(s.runner.options.Tools, nil)
	q := a.request
	q.Handler = host.NewReplay(past, rehearsal)
	switch {
	case q.Language == directCall:
		err = a.setCall(s.runner)
		if err == nil {
			_, err = a.once(ctx, q.Handler)
		}
	case a.session != "":
		_, err = s.previewOf(ctx, a.owner, a.session, q)
	default:
		_, err = s.runner.run(ctx, q)
	}
	return host.NewPlan(rehearsal, err), nil
}

// setCall sets how a direct call is made.
func (a *approvedRun) setCall(r *Runner) error {
	c, err := readDirectCall(a.request.Source)
	a.once = c.once(func(ctx context.Context) (tool.Result, error) {
		return r.options.Tools.Call(ctx, tool.Call{Ref: c.Ref, Args: c.Args, Meta: c.Meta, Caller: a.request.Caller})
	})
	return err
}

// runStored runs a stored run, in its session if it is a turn of one.
func (s *Sessions) runStored(ctx context.Context, a *approvedRun) (Turn, error) {
	if a.session != "" {
		return s.runTurn(ctx, a, true)
	}
	if a.request.Language == directCall {
		if err := a.setCall(s.runner); err != nil {
			return Turn{}, err
		}
	} else {
		a.once = func(ctx context.Context, handler host.Handler) (Outcome, error) {
			q := a.request
			q.Handler = handler
			return s.runner.run(ctx, q)
		}
	}
	outcome, err := a.run(ctx)
	return Turn{Outcome: outcome}, err
}

// errSessionChanged is the error of a turn whose session has changed since it paused.
func errSessionChanged(id string) error {
	return fault.New(fault.Conflict, "session %s was changed while the turn waited for approval", id).
		WithHint("run the turn again; its effects before the pause are not undone")
}

// PendingInfo tells the caller that the script waits for approval.
type PendingInfo struct {
	ID        string         `json:"approval_id"`
	Subject   string         `json:"subject"`
	Plan      []host.Planned `json:"plan"`
	Certain   bool           `json:"certain"`
	Complete  bool           `json:"complete"`
	ExpiresAt time.Time      `json:"expires_at"`

	Incomplete string `json:"incomplete,omitempty"` // why the plan is not complete
	PlanDigest string `json:"plan_digest"`          // for approval_decide
}

// Info returns the same as data.
func (p *PendingError) Info() PendingInfo {
	return PendingInfo{
		ID: p.ID, Subject: p.Effect.DisplayName(), Plan: p.Plan, Certain: p.Certain, Complete: p.Complete, ExpiresAt: p.Expires.UTC(),
		Incomplete: p.Incomplete, PlanDigest: host.PlanDigest(p.Plan),
	}
}

// Text says what the script waits for and how to continue.
func (w PendingInfo) Text() string {
	text := fmt.Sprintf("Waiting for approval %s of %s.\n%s", w.ID, w.Subject, host.PlanText(w.Plan))
	if !w.Complete {
		text += "\n" + IncompleteText(w.Incomplete)
	}
	return text + fmt.Sprintf("\nA person decides with `luanette approval allow %s` (or deny), or with approval_decide; approval_status shows the outcome.", w.ID)
}

// StatusWaiting is the status in the result of a tool whose script waits.
const StatusWaiting = tool.StatusPending

// waitingResult is the result of a tool whose script waits. It is not a failure: the
// script continues after the decision.
func waitingResult(p *PendingError, o Outcome) tool.Result {
	w := p.Info()
	result, err := tool.Output(w.Text(), map[string]any{"status": StatusWaiting, "approval": w})
	if err != nil {
		return tool.Failure(err)
	}
	return withOutput(result, o.Output)
}

// IncompleteText says why a plan ends before the script does.
func IncompleteText(why string) string {
	if why == "" {
		return "The plan may be incomplete."
	}
	return "The plan may be incomplete: with the made-up answers the script ended early, with " + why
}

// ResumeResult is the outcome of a run that resumed after its approval.
type ResumeResult struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Made     json.RawMessage `json:"tool_result,omitempty"` // of a direct call: the whole result; Result is its value
	Error    *ResumeError    `json:"error,omitempty"`
	Output   []OutputLine    `json:"output"`
	Warnings []string        `json:"warnings,omitempty"`
	Status   string          `json:"status,omitempty"` // StatusWaiting if it waits again
	Approval *PendingInfo    `json:"approval,omitempty"`
}

// ResumeError is why the run failed.
type ResumeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// OutputLine is a line that the run printed.
type OutputLine struct {
	Stream string `json:"stream"`
	Level  string `json:"level,omitempty"`
	Text   string `json:"text"`
}

// ReadOutcome reads a stored outcome.
func ReadOutcome(raw json.RawMessage) (o ResumeResult, err error) {
	if err := json.Unmarshal(raw, &o); err != nil || o.Made == nil {
		return o, err
	}
	value, failed := valueOf(o.Made)
	shown := newResumeResult(Turn{Outcome: Outcome{Result: value}}, failed)
	o.Result, o.Error = shown.Result, shown.Error
	return o, nil
}

func newResumeResult(done Turn, err error) ResumeResult {
	a := ResumeResult{Result: done.Result, Output: make([]OutputLine, len(done.Output)), Warnings: done.Warnings}
	for i, line := range done.Output {
		a.Output[i] = OutputLine{line.Stream, line.Level, line.Text}
	}
	var pending *PendingError
	var failed *Error
	switch {
	case errors.As(err, &pending):
		w := pending.Info()
		a.Status, a.Approval = StatusWaiting, &w
		return a
	case errors.As(err, &failed):
		err = failed.Fault()
	}
	if err != nil {
		f := fault.From(err)
		a.Error = &ResumeError{string(f.Code), f.Error(), fault.HintOf(f)}
	}
	return a
}
