package openapi

import (
	"strings"

	"github.com/luanette/luanette/internal/apis/api"
)

// cleanName keeps letters, digits, dots and dashes of ASCII, and underscores for the rest.
func cleanName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, text), "_")
}

// nameOperations gives every operation a name: that of its operationId, else of method and
// path. Names that are too long, or that several operations would have, get a hash of
// method and path. So a name depends on no other operation, except that another one of the
// same name exists.
func nameOperations(list []*operation, budget int) {
	count := map[string]int{}
	for _, op := range list {
		op.name = plainName(op)
		count[op.name]++
	}
	for _, op := range list {
		if len(op.name) > budget || count[op.name] > 1 {
			op.name = api.HashedName(op.name, op.method+" "+op.path, budget)
		}
	}
}

func plainName(op *operation) string {
	text := op.id
	if cleanName(text) == "" {
		text = strings.ToLower(op.method) + "_" + op.path
	}
	name := strings.NewReplacer("-", "_", ".", "_").Replace(cleanName(text))
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	return name
}
