package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/host"
	"github.com/luanette/luanette/lua"
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
		// Functions that earlier turns defined keep the name of theirs, so that
		// an error tells lines of this source from theirs.
		q.Name = fmt.Sprintf("turn%d", row.Turns+1)
		t := &turn{engine: s.runner.lua, saved: row.state}
		q.turn = t
		done.Outcome, err = s.runner.Run(ctx, q)
		if t.lost != nil {
			return t.lost
		}
		var problem error
		done.Session, done.Warnings, problem = s.keep(context.WithoutCancel(ctx), row, t, err)
		if err == nil {
			err = problem
		}
		return err
	})
	return done, err
}

// keep saves what a turn left, unless the turn was stopped.
func (s *Sessions) keep(ctx context.Context, row sessionRow, t *turn, failed error) (Session, []string, error) {
	if t.state == nil {
		return row.Session, nil, nil
	}
	var stopped *lua.BudgetError
	if t.unfinished || errors.As(failed, &stopped) {
		return row.Session, []string{"the turn was stopped: the session is as it was before"}, s.touch(ctx, row.ID)
	}
	var saved bytes.Buffer
	left, err := t.state.SnapshotPartial(&saved)
	if err != nil {
		return row.Session, []string{"the turn could not be saved, the session is as it was before: " + err.Error()}, s.touch(ctx, row.ID)
	}
	var warnings []string
	for _, one := range left {
		warnings = append(warnings, "not kept after this turn: "+one.Error())
	}
	row.state = saved.Bytes()
	session, err := s.save(ctx, row)
	return session, warnings, err
}

// turn is a run in a state that was saved before.
type turn struct {
	engine     *luaEngine
	saved      []byte // nil is a fresh state
	state      *lua.State
	unfinished bool  // what the script left open could not be ended
	lost       error // why the saved state cannot be used
}

// atEndName is where a saved state has what its preludes want called when a run
// ends.
const atEndName = "luanette.at_end"

// open brings the state back, or makes a fresh one, with the world of this run.
func (t *turn) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	if t.saved == nil {
		state, err := t.engine.open(ctx, limits, env, seed)
		if err != nil {
			return nil, err
		}
		if end, ok := state.Stored(endKey{}).(*lua.Function); ok {
			state.Registry().SetString(atEndName, end.Value())
		}
		t.state = state
		return state, nil
	}
	state, err := lua.Restore(t.saved, lua.RestoreOptions{Libraries: t.engine.libraries, Budget: lua.Budget{Memory: limits.Memory}})
	if err != nil {
		t.lost = fault.Wrap(fault.Conflict, err, "bring the session back").
			WithHint("session_reset makes it usable again; its variables are lost")
		return nil, t.lost
	}
	state.Store(envKey{}, env)
	if end, ok := state.Registry().GetString(atEndName).AsFunction(); ok {
		state.Store(endKey{}, end)
	}
	t.state = state
	return state, nil
}
