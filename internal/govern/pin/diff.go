package pin

import (
	"fmt"
	"slices"
	"strings"
)

// Change is one part of a definition that differs from what was approved. Old and New
// are readable, with hidden characters made visible; empty: the part did not or does
// not exist.
type Change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Diff is what changed since the pin was approved, or everything if it never was.
func (p *Pin) Diff() []Change {
	var changes []Change
	if p.ApprovedDigest != "" && p.ApprovedTarget != p.Target {
		changes = append(changes, Change{"server", Visible(p.ApprovedTarget), Visible(p.Target)})
	}
	before := &node{kind: '{'} // new: all of it is shown
	if len(p.ApprovedAs) > 0 {
		before = storedNode(p.ApprovedAs)
	}
	return append(changes, differences(nil, before, storedNode(p.Definition))...)
}

// Differences are those between two definitions.
func Differences(before, after []byte) []Change {
	return differences(nil, storedNode(before), storedNode(after))
}

// storedNode is a stored definition, which is canonical JSON unless the upstream wrote no JSON.
func storedNode(definition []byte) *node {
	n, ok := parse(definition)
	if !ok {
		return &node{text: string(definition)}
	}
	return &n
}

// differences compares two values part by part: objects, and lists of the same length.
// Everything else is shown whole. nil is a value that is not there.
func differences(at *place, before, after *node) (changes []Change) {
	if before.equals(after) {
		return nil
	}
	if before == nil || after == nil || !before.pairsWith(after) {
		return []Change{{at.String(), before.shown(), after.shown()}}
	}
	names := after.names()
	parts := map[string][2]*node{}
	for i, name := range names {
		parts[name] = [2]*node{nil, &after.kids[i]}
	}
	for i, name := range before.names() {
		both, there := parts[name]
		if !there {
			names = append(names, name)
		}
		both[0] = &before.kids[i]
		parts[name] = both
	}
	if after.kind == '{' {
		slices.Sort(names)
	}
	for _, name := range names {
		changes = append(changes, differences(after.step(at, name), parts[name][0], parts[name][1])...)
	}
	return changes
}

// pairsWith reports whether two values can be compared part by part.
func (n *node) pairsWith(other *node) bool {
	switch {
	case n.kind != other.kind:
		return false
	case n.kind == '[':
		return len(n.kids) == len(other.kids)
	}
	return n.kind == '{'
}

func (n *node) equals(other *node) bool {
	if n == nil || other == nil {
		return n == other
	}
	return n.kind == other.kind && n.name == other.name && n.text == other.text &&
		slices.EqualFunc(n.kids, other.kids, func(a, b node) bool { return a.equals(&b) })
}

// shown is a readable value: text without quotes, the rest as JSON.
func (n *node) shown() string {
	switch {
	case n == nil:
		return ""
	case n.kind == '"':
		return Visible(n.text)
	default:
		return Visible(string(n.encode()))
	}
}

// FormatChanges writes changes as a diff.
func FormatChanges(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s\n", c.Path)
		for _, side := range []struct{ mark, text string }{{"-", c.Old}, {"+", c.New}} {
			if side.text == "" {
				continue
			}
			for line := range strings.Lines(side.text) {
				fmt.Fprintf(&b, "  %s %s\n", side.mark, strings.TrimRight(line, "\n"))
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
