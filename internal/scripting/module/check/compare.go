package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/redact"
)

// differences lists where got differs from want, as "at PATH: got …, want …".
func differences(path []string, want, got any) []string {
	switch wanted := want.(type) {
	case map[string]any:
		if found, ok := got.(map[string]any); ok {
			return memberDifferences(path, wanted, found)
		}
	case []any:
		if found, ok := got.([]any); ok && len(found) == len(wanted) {
			var all []string
			for i := range wanted {
				all = append(all, differences(append(path[:len(path):len(path)], fmt.Sprint(i+1)), wanted[i], found[i])...)
			}
			return all
		}
	}
	if same(want, got) {
		return nil
	}
	at := ""
	if len(path) > 0 {
		at = "at " + strings.Join(path, ".") + ": "
	}
	return []string{at + "got " + shown(got) + ", want " + shown(want)}
}

func memberDifferences(path []string, want, got map[string]any) (all []string) {
	keys := slices.Sorted(maps.Keys(want))
	for key := range got {
		if _, known := want[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		all = append(all, differences(append(path[:len(path):len(path)], key), want[key], got[key])...)
	}
	return all
}

// same compares values of which not both are objects, or arrays of the same length.
// Numbers are the same if they have the same value: 1 and 1.0.
func same(want, got any) bool {
	a, number := want.(json.Number)
	b, both := got.(json.Number)
	if number && both && a != b {
		x, errX := a.Float64()
		y, errY := b.Float64()
		whole := !strings.ContainsAny(string(a+b), ".eE")
		return errX == nil && errY == nil && x == y && !whole
	}
	return reflect.DeepEqual(want, got)
}

// includes reports whether whole contains part.
func includes(whole, part any) bool {
	switch w := whole.(type) {
	case string:
		text, ok := part.(string)
		return ok && strings.Contains(w, text)
	case []any:
		return slices.ContainsFunc(w, func(element any) bool { return len(differences(nil, part, element)) == 0 })
	case map[string]any:
		members, ok := part.(map[string]any)
		for key, want := range members {
			got, has := w[key]
			ok = ok && has && len(differences(nil, want, got)) == 0
		}
		return ok
	}
	return false
}

// Limits of what an error shows.
const (
	maxShown       = 400
	maxDifferences = 5
)

// shown is a value as JSON; nil is nil.
func shown(value any) string {
	if value == nil {
		return "nil"
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return fmt.Sprint(value)
	}
	return redact.Cut(strings.TrimSuffix(out.String(), "\n"), maxShown)
}

func first(all []string) []string {
	if more := len(all) - maxDifferences; more > 0 {
		return append(all[:maxDifferences:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return all
}
