package upstream

import (
	"cmp"
	"slices"
)

// operation is what has to be done to one upstream.
type operation uint8

const (
	stop    operation = iota // it is no longer desired
	start                    // it does not run yet
	replace                  // it runs, but the new spec needs another connection
	adjust                   // it can stay connected with the new spec
)

type action struct {
	operation operation
	name      string
	spec      Spec // the desired one; zero for stop
}

// reconcile lists the actions that turn the running connections into the desired
// ones: first those that stop, then by name.
func reconcile(desired, running map[string]Spec) []action {
	var todo []action
	for name := range running {
		if _, wanted := desired[name]; !wanted {
			todo = append(todo, action{operation: stop, name: name})
		}
	}
	for name, want := range desired {
		have, found := running[name]
		switch {
		case !found:
			todo = append(todo, action{start, name, want})
		case !want.sameConnection(have):
			todo = append(todo, action{replace, name, want})
		case !want.Equal(have):
			todo = append(todo, action{adjust, name, want})
		}
	}
	slices.SortFunc(todo, func(a, b action) int {
		if (a.operation == stop) != (b.operation == stop) {
			return cmp.Compare(a.operation, b.operation)
		}
		return cmp.Compare(a.name, b.name)
	})
	return todo
}
