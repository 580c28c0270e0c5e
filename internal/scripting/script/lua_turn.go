package script

import (
	"bytes"
	"context"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// luaTurn is a run in the state of a session.
type luaTurn struct {
	engine     *luaEngine
	live       *lua.State // the cached state; nil restores saved
	saved      []byte     // nil means a fresh state
	state      *lua.State
	unfinished bool  // the function registered with atEnd failed
	failed     error // why the saved state cannot be used
}

func (e *luaEngine) turn(saved []byte) turn { return &luaTurn{engine: e, saved: saved} }

func (t *luaTurn) restoreError() error { return t.failed }

// stateAfter returns the state after the run, without what cannot be saved.
func (t *luaTurn) stateAfter(_ context.Context, failed error) ([]byte, bool, []string) {
	if t.state == nil {
		return nil, false, nil
	}
	var stopped *lua.BudgetError
	if t.unfinished || errors.As(failed, &stopped) {
		return nil, false, []string{turnStopped}
	}
	var saved bytes.Buffer
	left, err := t.state.SnapshotPartial(&saved)
	if err != nil {
		return nil, false, []string{turnUnsaved + err.Error()}
	}
	var warnings []string
	for _, one := range left {
		warnings = append(warnings, "not saved after this turn: "+one.Error())
	}
	return saved.Bytes(), true, warnings
}

// atEndName is the registry key of the function that the preludes registered with atEnd.
const atEndName = "luanette.at_end"

// open prepares the state for this run.
func (t *luaTurn) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	state, err := t.obtain(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	state.Store(envKey{}, env)
	if end, ok := state.Registry().GetString(atEndName).AsFunction(); ok {
		state.Store(endKey{}, end)
	}
	t.state = state
	return state, nil
}

// obtain takes the cached state, restores the saved one, or makes a fresh one.
func (t *luaTurn) obtain(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
	switch {
	case t.live != nil:
		t.live.SetBudget(limits.budget())
		return t.live, nil
	case t.saved != nil:
		state, err := lua.Restore(t.saved, lua.RestoreOptions{Libraries: t.engine.libraries, Functions: errorFunctions, Budget: limits.budget()})
		if err != nil {
			t.failed = fault.Wrap(fault.Conflict, err, "restore the session").
				WithHint("session_reset makes it usable again; its variables are lost")
		}
		return state, t.failed
	}
	state, err := t.engine.open(ctx, limits, env, seed)
	if err != nil {
		return nil, err
	}
	if end, ok := state.Stored(endKey{}).(*lua.Function); ok {
		state.Registry().SetString(atEndName, end.Value())
	}
	return state, nil
}

// luaState is a state that stays in memory between turns.
type luaState struct{ *lua.State }

func (s luaState) fork() (forkable, error) {
	copied, err := s.Fork()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "copy the session")
	}
	return luaState{copied}, nil
}

func (t *luaTurn) reuse(state forkable) { t.live = state.(luaState).State }

func (t *luaTurn) ready() forkable { return luaState{t.state} }
