package script

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/fault"
)

// Turn is what one run in a session left behind, also when it failed.
type Turn struct {
	Outcome
	Session  Session
	Warnings []string // what of the state could not be kept, and why
}

// Eval runs a request in a session, after all that came before it. Output and
// world are the turn's own; globals are the session's. A script that fails has
// changed what it changed before it failed. One that is stopped, by a limit or
// because ctx was cancelled, has changed nothing: the session is as it was before
// the turn. The error is an *Error when the script is at fault.
func (s *Sessions) Eval(ctx context.Context, owner, id string, q Request) (done Turn, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, err := s.load(ctx, owner, id)
		if err != nil {
			return err
		}
		if q, err = s.inSession(q, row); err != nil {
			return err
		}
		done.Outcome, err = s.runner.Run(ctx, q)
		if lost := q.turn.lost(); lost != nil {
			return lost
		}
		var problem error
		done.Session, done.Warnings, problem = s.keep(context.WithoutCancel(ctx), row, q.turn, err)
		if err == nil {
			err = problem
		}
		return err
	})
	return done, err
}

// inSession is a request as the next turn of a session.
func (s *Sessions) inSession(q Request, row sessionRow) (Request, error) {
	if q.Language != "" && q.Language != row.Language {
		return q, fault.New(fault.InvalidParams, "the session speaks %s, the code is to be %s", row.Language, q.Language).
			WithHint("leave language away, or make another session")
	}
	q.Language = row.Language
	// Functions that earlier turns defined keep the name of theirs, so that an
	// error tells lines of this source from theirs.
	q.Name = fmt.Sprintf("turn%d", row.Turns+1)
	engine, err := s.runner.engineFor(q)
	if err == nil {
		q.turn = engine.turn(row.state)
	}
	return q, err
}

// keep saves what a turn left, unless the turn was stopped.
func (s *Sessions) keep(ctx context.Context, row sessionRow, t turn, failed error) (Session, []string, error) {
	state, changed, warnings := t.leave(ctx, failed)
	if !changed {
		return row.Session, warnings, s.touch(ctx, row.ID)
	}
	row.state = state
	session, err := s.save(ctx, row)
	return session, warnings, err
}

// What is said of a turn that changed nothing.
const (
	turnStopped = "the turn was stopped: the session is as it was before"
	turnUnsaved = "the turn could not be saved, the session is as it was before: "
)
