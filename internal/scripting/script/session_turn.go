package script

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
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
	a := &attended{runner: s.runner, key: newRunKey(), owner: owner, session: id, request: q}
	done, err = s.attend(ctx, a, false)
	if _, problem := a.finish(ctx, done, err); err == nil {
		err = problem
	}
	return done, err
}

// attend takes a turn of a session. One that is resumed needs the session to be
// where it was when the turn stopped.
func (s *Sessions) attend(ctx context.Context, a *attended, resumed bool) (done Turn, err error) {
	err = s.inTurn(ctx, a.session, func(ctx context.Context) error {
		var row sessionRow
		var live *liveState
		var q Request
		a.once = func(ctx context.Context, handler host.Handler) (_ Outcome, err error) {
			if row, live, err = s.fetch(ctx, a.owner, a.session); err != nil {
				return Outcome{}, err
			}
			switch {
			case resumed && row.Turns == a.turns+1 && row.run == a.key:
				return Outcome{}, errTurnKept
			case resumed && row.Turns != a.turns:
				return Outcome{}, wentOn(a.session)
			}
			a.turns = row.Turns
			if q, err = s.inSession(a.request, row, live); err != nil {
				return Outcome{}, err
			}
			q.Handler = handler
			outcome, err := s.runner.run(ctx, q)
			if lost := q.turn.lost(); lost != nil {
				return outcome, lost
			}
			return outcome, err
		}
		done.Outcome, err = s.take(ctx, a)
		if errors.Is(err, errTurnKept) {
			done.Session, done.Warnings = row.Session, []string{errTurnKept.Error()}
			return nil
		}
		if q.turn == nil || q.turn.lost() != nil || a.spoiled {
			return err
		}
		if parent := host.ParentOf(ctx); parent != nil && host.Rehearsing(parent.Handler) {
			done.Session = row.Session // a script that is only rehearsed asked for the turn
			return err
		}
		if a.ledger != nil {
			row.run = a.key
		}
		var problem error
		done.Session, done.Warnings, problem = s.keep(context.WithoutCancel(ctx), row, live, q.turn, err)
		s.tell("used", done.Session, err != nil)
		if err == nil {
			err = problem
		}
		return err
	})
	return done, err
}

// take runs a turn: attended, or as a part of what another script does.
func (s *Sessions) take(ctx context.Context, a *attended) (Outcome, error) {
	if a.request.Handler != nil || host.ParentOf(ctx) != nil || s.runner.options.Approvals == nil {
		return a.once(ctx, a.request.Handler)
	}
	return a.run(ctx)
}

// Preview runs a request in a copy of a session, after all that came before it,
// and throws the copy away: the session stays as it is, bit for bit. The request's
// door keeps the rest of the world as it is.
func (s *Sessions) Preview(ctx context.Context, owner, id string, q Request) (outcome Outcome, err error) {
	err = s.inTurn(ctx, id, func(ctx context.Context) error {
		row, live, err := s.fetchCopy(ctx, owner, id)
		if err != nil {
			return err
		}
		if q, err = s.inSession(q, row, live); err != nil {
			return err
		}
		outcome, err = s.runner.Run(ctx, q)
		if lost := q.turn.lost(); lost != nil {
			return lost
		}
		return err
	})
	return outcome, err
}

// fetch reads a session, and takes its state from memory if that is the newest.
func (s *Sessions) fetch(ctx context.Context, owner, id string) (sessionRow, *liveState, error) {
	row, err := s.load(ctx, owner, id, s.live.version(id))
	if err != nil {
		return row, nil, err
	}
	live := s.live.take(id, row.Turns)
	if live == nil && row.state == nil && row.Size > 0 { // let go of between two looks
		row, err = s.load(ctx, owner, id, noVersion)
	}
	return row, live, err
}

// fetchCopy is fetch for what must leave the session as it is.
func (s *Sessions) fetchCopy(ctx context.Context, owner, id string) (sessionRow, *liveState, error) {
	row, live, err := s.fetch(ctx, owner, id)
	if err != nil || live == nil {
		return row, live, err
	}
	s.live.put(live)
	live, err = live.copied()
	return row, live, err
}

// inSession is a request as the next turn of a session.
func (s *Sessions) inSession(q Request, row sessionRow, live *liveState) (Request, error) {
	if q.Language != "" && q.Language != row.Language {
		return q, fault.New(fault.InvalidParams, "the session speaks %s, the code is to be %s", row.Language, q.Language).
			WithHint("leave language away, or make another session")
	}
	q.Language = row.Language
	// Functions that earlier turns defined keep the name of theirs, so that an
	// error tells lines of this source from theirs.
	q.Name = fmt.Sprintf("turn%d", row.Turns+1)
	q.Limits = q.Limits.orDefault(s.options.Turn).orDefault(s.runner.options.Limits).within(row.Limits)
	engine, err := s.runner.engineFor(q)
	if err != nil {
		return q, err
	}
	q.turn, q.FlowName = engine.turn(row.state), "session:"+row.ID
	if ready, ok := q.turn.(readyTurn); ok && live != nil {
		ready.adopt(live.state)
	}
	return q, nil
}

// within narrows the time and memory of a run.
func (l Limits) within(bound Limits) Limits {
	if bound.Time > 0 {
		l.Time = min(l.Time, bound.Time)
	}
	if bound.Memory > 0 {
		l.Memory = min(l.Memory, bound.Memory)
	}
	return l
}

// keep saves what a turn left, unless the turn was stopped. before is what was
// taken from memory for it, or nil.
func (s *Sessions) keep(ctx context.Context, row sessionRow, before *liveState, t turn, failed error) (Session, []string, error) {
	state, changed, warnings := t.leave(ctx, failed)
	if changed && int64(len(state)) > s.options.State {
		changed = false
		warnings = []string{turnUnsaved + fmt.Sprintf("it takes %d bytes, %d are allowed", len(state), s.options.State)}
	}
	if !changed {
		return row.Session, warnings, s.touch(ctx, row)
	}
	session, sum := row.Session, sha256.Sum256(state)
	var err error
	if sum == sumBefore(row, before) {
		err = s.touch(ctx, row)
	} else {
		row.state = state
		session, err = s.save(ctx, row)
	}
	if ready, ok := t.(readyTurn); ok && err == nil && len(warnings) == 0 { // what is not kept is gone also for who comes at once
		s.live.put(&liveState{id: row.ID, version: session.Turns, state: ready.ready(), size: int64(len(state)), sum: sum})
	}
	return session, warnings, err
}

// sumBefore is that of the state as it was saved before a turn.
func sumBefore(row sessionRow, before *liveState) (sum [32]byte) {
	switch {
	case before != nil:
		return before.sum
	case row.state != nil:
		return sha256.Sum256(row.state)
	}
	return sum
}

// errTurnKept tells of a turn that was kept, by a process that died before it
// could say so.
var errTurnKept = errors.New("the server stopped when the turn had ended and the session was saved: what the turn answered is lost")

// What is said of a turn that changed nothing.
const (
	turnStopped = "the turn was stopped: the session is as it was before"
	turnUnsaved = "the turn could not be saved, the session is as it was before: "
)
