package upstream

import (
	"cmp"
	"slices"
)

// operation is what has to be done to one upstream.
type operation uint8

const (
	stop    operation = iota // it is not wanted any more
	start                    // it is not there yet
	replace                  // it is there, but connects to something else
	adjust                   // it may stay connected, other things changed
)

type action struct {
	operation operation
	name      string
	spec      Spec // as wanted; zero for stop
}

// reconcile says what turns actual into desired. It decides, it does nothing:
// the order is stops first, then by name, and what is right already is left out.
func reconcile(desired, actual map[string]Spec) []action {
	var todo []action
	for name := range actual {
		if _, wanted := desired[name]; !wanted {
			todo = append(todo, action{operation: stop, name: name})
		}
	}
	for name, want := range desired {
		have, there := actual[name]
		switch {
		case !there:
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
