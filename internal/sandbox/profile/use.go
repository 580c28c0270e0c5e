package profile

import (
	"cmp"
	"slices"
	"sync"
)

// Use is something that a traced program did, or tried.
type Use struct {
	Action, Object string // as in Refusal

	Refused bool // it was not possible in the trace
	Base    bool // every strict sandbox allows it
	Own     bool // it is about a folder that every sandbox has for itself
	Sought  bool // it was looked for in the private home, and only the user's home has it
}

// Trace collects what programs do. The zero value is ready to use.
type Trace struct {
	mu   sync.Mutex
	uses map[Use]bool
}

// Add adds a use.
func (t *Trace) Add(u Use) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses == nil {
		t.uses = map[Use]bool{}
	}
	t.uses[u] = true
}

// Uses are all different uses, in order.
func (t *Trace) Uses() []Use {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Use, 0, len(t.uses))
	for u := range t.uses {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Use) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Action, b.Action)) })
	return list
}
