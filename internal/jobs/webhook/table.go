package webhook

import (
	"strings"
	"sync/atomic"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Table holds the current hooks. The zero value holds none; it is safe for concurrent use.
type Table struct {
	hooks atomic.Pointer[map[string]Hook]
}

// Set replaces the hooks.
func (t *Table) Set(hooks map[string]Hook) { t.hooks.Store(&hooks) }

// Hooks returns the hooks by name.
func (t *Table) Hooks() map[string]Hook {
	if hooks := t.hooks.Load(); hooks != nil {
		return *hooks
	}
	return nil
}

// Current returns the current rights of a hook's principal, and false for a principal of
// another kind. Jobs of a hook that was removed end.
func (t *Table) Current(was principal.Principal) (principal.Principal, bool, error) {
	name, ok := strings.CutPrefix(was.ID, principalPrefix)
	if !ok {
		return was, false, nil
	}
	hook, ok := t.Hooks()[name]
	if !ok {
		return principal.Anonymous(), true, fault.New(fault.Denied, "the hook %s was removed", name)
	}
	return hook.Principal, true, nil
}
