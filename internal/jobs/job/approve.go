package job

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// Approvals decides what jobs may do, and stores the ones that wait for approval.
type Approvals interface {
	// Approver returns the approval of one run, whose journal so far is past. It is
	// nil if nothing needs approval.
	Approver(ctx context.Context, who host.RunInfo, past []host.Step) (host.Approver, error)
	// Ask stores a paused run.
	Ask(ctx context.Context, p host.Paused) (host.Pending, error)
	// Asked returns the request of a run that is not decided yet; ok is false if there
	// is none.
	Asked(ctx context.Context, run string) (pending host.Pending, ok bool, err error)
	// Await waits for the decision.
	Await(ctx context.Context, id string) error
	// Answer decides a request.
	Answer(ctx context.Context, id string, answer host.Answer) error
	// Withdraw removes the question of a run that has ended.
	Withdraw(ctx context.Context, run string) error
}

// approvedJournal is a job's journal with the approval of its effects.
type approvedJournal struct {
	handler  host.Handler
	approval *host.Approval // nil if nothing needs approval
	who      host.RunInfo
	asked    host.Pending // the request of an earlier attempt that was open when this one began; ID "" if none was
}

// withApproval adds the approval of effects to a job's journal, if any need it.
func (q *Queue) withApproval(ctx context.Context, j Job, past []host.Step, journal host.Handler) (approvedJournal, error) {
	g := approvedJournal{handler: journal, who: runInfoOf(j)}
	if q.options.Approvals == nil {
		return g, nil
	}
	if j.resumed || g.who.AskAlways {
		// This is read before the decisions: if one arrives in between, the job finds it when
		// it waits for this request, and does not ask for the same effect twice.
		err := q.persist(ctx, func() (err error) {
			g.asked, _, err = q.options.Approvals.Asked(ctx, g.who.Key)
			return err
		})
		if err != nil {
			return g, err
		}
	}
	approver, err := q.options.Approvals.Approver(ctx, g.who, past)
	if err != nil || approver == nil {
		return g, err
	}
	g.approval = host.NewApproval(journal, approver, host.NewRehearsal(q.options.Tools, nil))
	g.handler = g.approval
	return g, nil
}

// runInfoOf describes a job to those who approve its effects.
func runInfoOf(j Job) host.RunInfo {
	who := host.RunInfo{Key: "job:" + j.ID, Name: j.Name, Hash: j.Hash, AskAlways: slices.Contains(j.Tags, undoTag)}
	for _, tag := range j.Tags {
		if id, ok := strings.CutPrefix(tag, undoTag+":"); ok {
			who.Undoes = id
		}
	}
	if who.Hash == "" {
		who.Hash = cas.Sum([]byte(j.Source)).String()
	}
	if who.Name == "" {
		who.Name = "job " + j.ID
	}
	return who
}

// paused returns where the run stopped to wait for approval, or nil.
func (g approvedJournal) paused(outcome Outcome, err error) *pausedError {
	if g.approval == nil || g.approval.Paused() == nil {
		return nil
	}
	return &pausedError{host.NewPaused(g.who, g.approval, err, outcome.Output), g.asked}
}

// pausedError is the error of a run that waits for approval.
type pausedError struct {
	host.Paused
	asked host.Pending // the request to wait for; ID "" if it is still to be made
}

func (a *pausedError) Error() string { return a.Effect.DisplayName() + " waits for approval" }

// pause asks for approval, unless an earlier attempt has, and waits for the decision.
func (q *Queue) pause(ctx context.Context, j Job, why error, held *bool) error {
	var paused *pausedError
	if !errors.As(why, &paused) {
		return why
	}
	pending := paused.asked
	if pending.ID == "" {
		run, err := q.asOwner(ctx, j.ID)
		if err != nil {
			return err
		}
		if pending, err = q.options.Approvals.Ask(run, paused.Paused); err != nil {
			return err
		}
	}
	return q.awaitDecision(ctx, j, Paused{Approval: pending.ID, Subject: paused.Effect.DisplayName()}, held)
}

// awaitDecision waits for a decision, without holding a place in the queue meanwhile. The
// event has the request and its subject.
func (q *Queue) awaitDecision(ctx context.Context, j Job, e Paused, held *bool) error {
	run := runInfoOf(j).Key
	if err := q.persist(ctx, func() error { return q.storeState(ctx, j.ID, Waiting) }); err != nil {
		return q.withdrawQuestion(ctx, run, err)
	}
	e.ID, e.Name, e.Creator = j.ID, j.Name, j.Creator
	q.options.Events.PublishFor(j.owner, e)
	if *held {
		q.turns.give(j.Creator)
		*held = false
	}
	if err := q.options.Approvals.Await(ctx, e.Approval); err != nil {
		return q.withdrawQuestion(ctx, run, err)
	}
	if !q.unlimited(j) {
		if err := q.turns.take(ctx, j.Creator, j.Priority); err != nil {
			return err
		}
		*held = true
	}
	return q.persist(ctx, func() error { return q.storeState(ctx, j.ID, Running) })
}

// withdrawQuestion withdraws the question of a job that was cancelled.
func (q *Queue) withdrawQuestion(ctx context.Context, run string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = errCancelled
	}
	if errors.Is(err, errCancelled) {
		return errors.Join(err, q.options.Approvals.Withdraw(context.WithoutCancel(ctx), run))
	}
	return err
}

// storeState stores the state of an unfinished job. A job that waits has made progress, so
// its attempts are counted anew.
func (q *Queue) storeState(ctx context.Context, id string, s State) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, "UPDATE jobs SET state = $2, attempts = 0 WHERE id = $1 AND finished = 0 AND node = $3", id, s, q.options.Node)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return sql.ErrNoRows
	})
}
