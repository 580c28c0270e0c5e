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

// ApprovedRun is a run whose effects may need approval.
type ApprovedRun struct {
	Request Request
	Key     string // the same for every attempt
	Owner   string
	Session string // the session it is a turn of; "" if it is none
	Turns   int64  // of the session before the run

	journal     []byte           // effects of all earlier attempts
	resumeStore host.ResumeStore // where the run is recorded after its approval; nil before
}

// NewApprovedRun returns the run of a request, for the user of its caller.
func NewApprovedRun(q Request) *ApprovedRun {
	a := &ApprovedRun{Request: q, Key: "run:" + strings.ToLower(rand.Text()[:16])}
	if q.Caller != nil {
		a.Owner = q.Caller.User
	}
	return a
}

// Resumed reports whether the run has waited for approval.
func (a *ApprovedRun) Resumed() bool { return a.resumeStore != nil }

// Attempt makes a run once, with a Handler. A run that waited for approval is made again from
// its beginning, with its effects so far answered from its journal.
type Attempt func(ctx context.Context, handler host.Handler) (Outcome, error)

// mayAsk reports whether effects of a run may need approval: not those of a run with its own
// Handler, and those of a run inside another one are effects of the other.
func (r *Runner) mayAsk(ctx context.Context, q Request) bool {
	return q.Handler == nil && host.ParentOf(ctx) == nil && r.options.Approvals != nil
}

// Approve makes a run until it ends or waits for approval: then the error is a *PendingError.
// After it, Finish is called.
func (r *Runner) Approve(ctx context.Context, a *ApprovedRun, attempt Attempt) (Outcome, error) {
	if !r.mayAsk(ctx, a.Request) {
		return attempt(ctx, a.Request.Handler)
	}
	return r.withApprovals(ctx, a, attempt)
}

// withApprovals is Approve for a run whose effects may need approval.
func (r *Runner) withApprovals(ctx context.Context, a *ApprovedRun, attempt Attempt) (Outcome, error) {
	who := a.Request.runInfo(a.Key, a.Owner)
	for {
		past, err := host.ReadJournal(a.journal)
		if err != nil {
			return Outcome{}, err
		}
		approver, err := r.options.Approvals.Approver(ctx, who, past)
		if err != nil {
			return Outcome{}, err
		}
		if approver == nil && len(past) == 0 && a.resumeStore == nil {
			return attempt(ctx, host.Live())
		}
		outcome, paused, err := r.attemptRecorded(ctx, a, attempt, approver, past)
		if paused == nil {
			return outcome, err
		}
		pending, err := r.options.Approvals.Ask(ctx, *paused)
		if err != nil {
			return outcome, err
		}
		waits := &PendingError{pending, *paused}
		decided, err := Settle(ctx, a.Request.Caller, pending, paused, func(answer host.Answer) error {
			return r.options.Approvals.Answer(ctx, pending.ID, answer)
		})
		if err != nil || !decided { // the run waits for another decision
			return outcome, waits
		}
		if err := r.Finish(ctx, a, outcome, nil, waits); err != nil {
			return outcome, err
		}
		a.resumeStore = r.options.Approvals.ResumeStore(pending.ID)
	}
}

// attemptRecorded makes an attempt and records it. Effects in past are answered from the
// journal. An outcome that is partly rehearsed has no state.
func (r *Runner) attemptRecorded(
	ctx context.Context, a *ApprovedRun, attempt Attempt, approver host.Approver, past []host.Step,
) (Outcome, *host.Paused, error) {
	recorded := recorder{then: a.resumeStore}
	journal := host.NewJournal(&recorded, a.Key)
	if approver == nil { // nothing needs approval any more
		approver = allowAll{}
	}
	approval := host.NewApproval(journal, approver, r.options.Tools)
	replay := host.NewReplay(past, approval)
	outcome, err := attempt(ctx, replay)
	if a.resumeStore != nil { // every effect must be recorded before the end of the run is
		if problem := journal.Flush(); problem != nil {
			outcome.State = nil
			return outcome, nil, problem
		}
	}
	tail := journal.End()
	if went := replay.Err(); went != nil {
		outcome.State = nil
		return outcome, nil, went
	}
	if approval.Paused() == nil {
		return outcome, nil, err
	}
	outcome.State = nil
	if ctx.Err() != nil {
		return outcome, nil, err
	}
	a.journal = append(append(a.journal, recorded.data...), tail...)
	paused := host.NewPaused(a.Request.runInfo(a.Key, a.Owner), approval, err, outcome.Output)
	paused.ResumeState, err = json.Marshal(a.stored(ctx))
	return Outcome{Output: outcome.Output, Duration: outcome.Duration}, &paused, err
}

// Finish stores the outcome of a run that resumed after its approval.
func (r *Runner) Finish(ctx context.Context, a *ApprovedRun, outcome Outcome, warnings []string, failed error) error {
	_, err := r.finish(ctx, a, outcome, warnings, failed)
	return err
}

// finish is Finish, and returns what it stores: a ResumeResult as JSON.
func (r *Runner) finish(ctx context.Context, a *ApprovedRun, outcome Outcome, warnings []string, failed error) (json.RawMessage, error) {
	if a.resumeStore == nil {
		return nil, nil
	}
	result := newResumeResult(outcome, warnings, failed)
	if a.Request.Language == directCall {
		result.Made, result.Result = result.Result, nil
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return raw, a.resumeStore.Finish(context.WithoutCancel(ctx), raw)
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

// storedRun is a run as it is stored while it waits: the fields of its request that have
// names in JSON, and what follows.
type storedRun struct {
	Request

	Session string `json:"session,omitempty"` // the session it is a turn of
	Turns   int64  `json:"turns,omitempty"`   // of the session at that time
	Journal []byte `json:"journal"`           // its effects so far

	Asker  *principal.Principal `json:"asker,omitempty"` // whose run it is; nil means the local owner's
	Client *tool.Asker          `json:"client,omitempty"`
}

func (a *ApprovedRun) stored(ctx context.Context) storedRun {
	k := storedRun{Request: a.Request, Session: a.Session, Turns: a.Turns, Journal: a.journal, Client: tool.AskerOf(ctx, a.Request.Caller)}
	if who := principal.Of(ctx); who.ID != principal.LocalID {
		k.Asker = &who
	}
	return k
}

// readStored reads a run that waits for approval. q has what is not stored.
func (r *Runner) readStored(who host.RunInfo, stored []byte, q Request) (storedRun, *ApprovedRun, error) {
	k := storedRun{Request: q}
	if err := json.NewDecoder(bytes.NewReader(stored)).Decode(&k); err != nil {
		return k, nil, fault.Wrap(fault.Internal, err, "read a run that waited for approval")
	}
	k.AwaitTools = r.options.AwaitTools
	return k, &ApprovedRun{Request: k.Request, Key: who.Key, Owner: who.Owner, Session: k.Session, Turns: k.Turns, journal: k.Journal}, nil
}

// as returns ctx with the principal of the run and its current rights. The rights of
// whoever decided or resumed it do not apply.
func (k storedRun) as(ctx context.Context, r *Runner) (context.Context, error) {
	if r.options.Flow != nil { // whoever decides has read the plan
		ctx = r.options.Flow.Detach(ctx)
	}
	if k.Client != nil {
		ctx = tool.WithAsker(ctx, k.Client)
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

// Turns makes the runs that are turns of sessions.
type Turns interface {
	// ResumeTurn makes a turn that waited for approval. Its session must not have changed
	// since then.
	ResumeTurn(ctx context.Context, a *ApprovedRun) (outcome Outcome, warnings []string, err error)
	// PreviewTurn runs a request with its own Handler in a copy of a session.
	PreviewTurn(ctx context.Context, owner, session string, q Request) (Outcome, error)
}

// Resume continues a run that was stored while it waited for the approval with that id,
// after the last recorded effect. q has the caller waiting now. It stores the outcome
// and returns it, a ResumeResult as JSON; the error is that it could not be stored.
func (r *Runner) Resume(ctx context.Context, id string, who host.RunInfo, stored []byte, q Request, turns Turns) (json.RawMessage, error) {
	ctx, _ = db.WaitForDatabase(ctx) // an approved run must finish
	k, a, err := r.readStored(who, stored, q)
	if err != nil {
		return nil, err
	}
	a.resumeStore = r.options.Approvals.ResumeStore(id)
	records, err := a.resumeStore.Past(ctx)
	if err != nil {
		return nil, err
	}
	a.journal = append(a.journal, bytes.Join(records, nil)...)
	var outcome Outcome
	var warnings []string
	as, failed := k.as(ctx, r)
	switch {
	case failed != nil:
	case a.Session != "":
		outcome, warnings, failed = turns.ResumeTurn(as, a)
	default:
		outcome, failed = r.resume(as, a)
	}
	if ctx.Err() != nil { // stopped: it resumes later
		return nil, context.Cause(ctx)
	}
	return r.finish(ctx, a, outcome, warnings, failed)
}

// resume continues a run in a fresh state, or a direct call.
func (r *Runner) resume(ctx context.Context, a *ApprovedRun) (Outcome, error) {
	attempt := r.attempt(a.Request)
	if a.Request.Language == directCall {
		var err error
		if attempt, err = r.directAttempt(a.Request); err != nil {
			return Outcome{}, err
		}
	}
	return r.withApprovals(ctx, a, attempt)
}

// Rehearsal returns a Handler for a preview, with mocks given by the caller.
func (r *Runner) Rehearsal(ctx context.Context, q Request, answers map[string]json.RawMessage) (*host.Rehearsal, error) {
	return r.rehearsal(ctx, q.runInfo("", ""), nil, answers)
}

// rehearsal returns a Handler that changes nothing, for a run whose journal so far is past.
// It makes no read that needs approval.
func (r *Runner) rehearsal(ctx context.Context, who host.RunInfo, past []host.Step, answers map[string]json.RawMessage) (*host.Rehearsal, error) {
	if r.options.Approvals == nil {
		return host.NewRehearsal(r.options.Tools, nil, answers), nil
	}
	guard, err := r.options.Approvals.Approver(ctx, who, past)
	return host.NewRehearsal(r.options.Tools, guard, answers), err
}

// Plan makes the plan of a run again that waits for approval: from its journal on, nothing
// is carried out.
func (r *Runner) Plan(ctx context.Context, who host.RunInfo, stored []byte, turns Turns) (host.Plan, error) {
	k, a, err := r.readStored(who, stored, Request{})
	if err != nil {
		return host.Plan{}, err
	}
	past, err := host.ReadJournal(k.Journal)
	if err != nil {
		return host.Plan{}, err
	}
	if ctx, err = k.as(ctx, r); err != nil {
		return host.Plan{}, err
	}
	rehearsal, err := r.rehearsal(ctx, who, past, nil)
	if err != nil {
		return host.Plan{}, err
	}
	q := a.Request
	q.Handler = host.NewReplay(past, rehearsal)
	switch {
	case q.Language == directCall:
		var call Attempt
		if call, err = r.directAttempt(q); err == nil {
			_, err = call(ctx, q.Handler)
		}
	case a.Session != "":
		_, err = turns.PreviewTurn(ctx, a.Owner, a.Session, q)
	default:
		_, err = r.run(ctx, q)
	}
	return host.NewPlan(rehearsal, err), nil
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
	shown := newResumeResult(Outcome{Result: value}, nil, failed)
	o.Result, o.Error = shown.Result, shown.Error
	return o, nil
}

func newResumeResult(outcome Outcome, warnings []string, err error) ResumeResult {
	a := ResumeResult{Result: outcome.Result, Output: make([]OutputLine, len(outcome.Output)), Warnings: warnings}
	for i, line := range outcome.Output {
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
