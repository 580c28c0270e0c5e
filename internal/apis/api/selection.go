package api

import (
	"fmt"
	"slices"
	"strings"
)

// Operation is what selectors see of an operation.
type Operation struct {
	Names  []string // its own name, and that of its tool
	Method string   // of HTTP, or query or mutation
	Path   string
	Tags   []string // or the service that it belongs to
}

// selectorKinds are what selectors look at.
var selectorKinds = []string{"tag", "path", "method", "operation"}

func (s Settings) checkSelectors() error {
	for _, selector := range slices.Concat(s.Include, s.Exclude) {
		kind, text, ok := strings.Cut(selector, ":")
		if !ok || text == "" || !slices.Contains(selectorKinds, kind) {
			return fmt.Errorf("%q selects no operations: write tag:NAME, path:PATTERN, method:NAME or operation:PATTERN", selector)
		}
	}
	return nil
}

// Selects reports whether an operation is offered: included, if anything is, and not
// excluded.
func (s Settings) Selects(op Operation) bool {
	if len(s.Include) > 0 && !slices.ContainsFunc(s.Include, op.matches) {
		return false
	}
	return !slices.ContainsFunc(s.Exclude, op.matches)
}

// matches reports whether a selector such as tag:issues is about the operation.
func (op Operation) matches(selector string) bool {
	kind, pattern, _ := strings.Cut(selector, ":")
	like := func(text string) bool { return like(strings.ToLower(pattern), strings.ToLower(text)) }
	switch kind {
	case "tag":
		return slices.ContainsFunc(op.Tags, like)
	case "path":
		return like(op.Path)
	case "method":
		return like(op.Method)
	case "operation":
		return slices.ContainsFunc(op.Names, like)
	}
	return false
}

// like reports whether a text is as a pattern says, in which * stands for any text.
func like(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	if !ok {
		return false
	}
	for i := 0; i <= len(text); i++ {
		if like(rest, text[i:]) {
			return true
		}
	}
	return false
}
