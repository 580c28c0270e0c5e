// Package check is the check module of scripts: comparisons that raise an error which
// says what differs, for tests of scripts.
package check

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed check.md prelude.lua prelude.js
var files embed.FS

// Module is the global check.
func Module() host.Module {
	return host.Module{Name: "check", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "equal", Pure: host.BindPure(equal)},
		{Name: "ok", Pure: host.BindPure(ok)},
		{Name: "contains", Pure: host.BindPure(contains)},
		{Name: "__failed", Hidden: true, Pure: host.BindPure(failed)},
	}}
}

// equal compares two values deeply.
func equal(args host.Args, got, want host.Value) error {
	found := differences(nil, decoded(want), decoded(got))
	if len(found) == 0 {
		return nil
	}
	return failure(args, 3, strings.Join(first(found), "; "))
}

// ok requires a value that is neither nil nor false.
func ok(args host.Args, v host.Value) error {
	if v == nil || v == false {
		return failure(args, 2, "got "+shown(decoded(v)))
	}
	return nil
}

// contains requires a part of a text, an element of an array, or members of an object.
func contains(args host.Args, in, wanted host.Value) error {
	whole, part := decoded(in), decoded(wanted)
	if !includes(whole, part) {
		return failure(args, 3, shown(whole)+" does not contain "+shown(part))
	}
	return nil
}

// failed judges how the function of check.fails ended: whether it returned, the text of
// its error, and then the arguments of check.fails.
func failed(args host.Args, ended host.Value, what, wanted *string) (string, error) {
	problem, part := host.Or(what, ""), host.Or(wanted, "")
	switch {
	case ended == true:
		return "", failure(args, 4, "it did not fail")
	case !strings.Contains(problem, part):
		return "", failure(args, 4, "it failed with '"+problem+"', which does not contain '"+part+"'")
	}
	return problem, nil
}

// failure is the error of a check, with the message that the script gave as argument at.
func failure(args host.Args, at int, what string) error {
	message, err := args.OptString(at, "")
	if err != nil {
		return err
	}
	if message != "" {
		what = message + ": " + what
	}
	return fault.New(fault.Script, "%s", what)
}

// decoded returns a value as encoding/json decodes it, with numbers as json.Number.
func decoded(value host.Value) any {
	switch v := value.(type) {
	case json.RawMessage:
		return parse(v)
	case *host.Lazy:
		return parse(v.JSON)
	case int64, float64:
		if raw, err := json.Marshal(v); err == nil {
			return json.Number(raw)
		}
	}
	return value
}

func parse(raw json.RawMessage) any {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return string(raw)
	}
	return value
}

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
