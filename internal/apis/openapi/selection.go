package openapi

import (
	"slices"
	"strings"
)

// selected reports whether an operation is offered: included, if anything is, and not
// excluded.
func selected(op *operation, include, exclude []string) bool {
	if len(include) > 0 && !slices.ContainsFunc(include, op.matches) {
		return false
	}
	return !slices.ContainsFunc(exclude, op.matches)
}

// matches reports whether a selector such as tag:issues is about the operation.
func (op *operation) matches(selector string) bool {
	kind, pattern, _ := strings.Cut(selector, ":")
	like := func(text string) bool { return like(strings.ToLower(pattern), strings.ToLower(text)) }
	switch kind {
	case "tag":
		return slices.ContainsFunc(op.tags, like)
	case "path":
		return like(op.path)
	case "method":
		return like(op.method)
	case "operation":
		return like(op.id) || like(plainName(op))
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
