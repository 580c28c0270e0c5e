package oauth

import (
	"slices"
	"strings"
)

// Challenge is the Bearer challenge in the WWW-Authenticate header of a refused
// request.
type Challenge struct {
	Metadata string   // address of its resource metadata
	Scopes   []string // the required scopes
	Error    string
}

// ParseChallenge returns the Bearer challenge of a header, or the zero Challenge if
// there is none.
func ParseChallenge(header string) Challenge {
	var c Challenge
	scheme := ""
	for rest := header; ; {
		var word string
		rest = strings.TrimLeft(rest, ", \t")
		if rest == "" {
			return c
		}
		end := strings.IndexAny(rest, "=, \t")
		if end < 0 {
			return c
		}
		word, rest = rest[:end], rest[end:]
		if !strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") {
			scheme = strings.ToLower(word)
			continue
		}
		value, after := parameter(strings.TrimLeft(rest, " \t")[1:])
		rest = after
		if scheme == "bearer" || scheme == "dpop" {
			c.set(strings.ToLower(word), value)
		}
	}
}

func (c *Challenge) set(name, value string) {
	switch {
	case name == "resource_metadata" && c.Metadata == "":
		c.Metadata = value
	case name == "scope" && c.Scopes == nil:
		c.Scopes = strings.Fields(value)
	case name == "error" && c.Error == "":
		c.Error = value
	}
}

// parameter parses a value, quoted or not, and returns the rest.
func parameter(text string) (value, rest string) {
	text = strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			return text, ""
		}
		return text[:end], text[end:]
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:]
		case '\\':
			if i++; i < len(text) {
				out.WriteByte(text[i])
			}
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String(), ""
}

// InsufficientScope is the error of a request whose token lacks a scope.
const InsufficientScope = "insufficient_scope"

// union returns a with the elements of b that it lacks.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}
