package script

import (
	"bytes"
	"context"
	"errors"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/host"
	"github.com/luanette/luanette/lua"
)

// luaTurn is a run in a state that was saved before.
type luaTurn struct {
	engine     *luaEngine
	saved      []byte // nil is a fresh state
	state      *lua.State
	unfinished bool  // what the script left open could not be ended
	failed     error // why the saved state cannot be used
}

func (e *luaEngine) turn(saved []byte) turn { return &luaTurn{engine: e, saved: saved} }

func (t *luaTurn) lost() error { return t.failed }

// leave gives the state after the run, with what cannot be saved left out.
func (t *luaTurn) leave(_ context.Context, failed error) ([]byte, bool, []string) {
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
		warnings = append(warnings, "not kept after this turn: "+one.Error())
	}
	return saved.Bytes(), true, warnings
}

// atEndName is where a saved state has what its preludes want called when a run
// ends.
const atEndName = "luanette.at_end"

// open brings the state back, or makes a fresh one, with the world of this run.
func (t *luaTurn) open(ctx context.Context, limits Limits, env *host.Env, seed uint64) (*lua.State, error) {
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
		t.failed = fault.Wrap(fault.Conflict, err, "bring the session back").
			WithHint("session_reset makes it usable again; its variables are lost")
		return nil, t.failed
	}
	state.Store(envKey{}, env)
	if end, ok := state.Registry().GetString(atEndName).AsFunction(); ok {
		state.Store(endKey{}, end)
	}
	t.state = state
	return state, nil
}
