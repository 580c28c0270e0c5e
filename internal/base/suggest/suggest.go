// Package suggest finds the known names that are closest to a mistyped one.
package suggest

import (
	"slices"
	"strings"
)

// Names returns at most limit of the known names that are similar to want, closest
// first and in alphabetical order among equals. A name is similar if it differs by a
// few edits for its length, or if one contains the other; a name of one or two letters is
// contained in nearly everything, and so counts for nothing.
func Names(want string, known []string, limit int) []string {
	type candidate struct {
		name string
		cost int
	}
	folded := strings.ToLower(want)
	var found []candidate
	for _, name := range known {
		if cost, ok := slip(folded, strings.ToLower(name)); ok {
			found = append(found, candidate{name, cost})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		return strings.Compare(a.name, b.name)
	})
	names := make([]string, 0, min(limit, len(found)))
	for _, c := range found[:min(limit, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// slip returns the distance of two names, and whether it is small enough for a
// suggestion.
func slip(want, name string) (cost int, near bool) {
	if want == "" || name == "" {
		return 0, false
	}
	allowed := 1 + max(len(want), len(name))/4
	if cost := Distance(want, name, allowed); cost <= allowed {
		return cost, true
	}
	if min(len(want), len(name)) >= 3 && (strings.Contains(name, want) || strings.Contains(want, name)) {
		return allowed + 1, true
	}
	return 0, false
}

// Distance counts the insertions, deletions, substitutions and swaps of neighbours
// that turn a into b. It stops above the limit.
func Distance(a, b string, limit int) int {
	if gap := len(a) - len(b); gap > limit || -gap > limit {
		return limit + 1
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if swapped(a[:i], b[:j]) {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		if slices.Min(row) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}

// swapped reports whether two words end with the same two letters in swapped order.
func swapped(a, b string) bool {
	i, j := len(a), len(b)
	return i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1]
}
