package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/luanette/luanette/internal/base/redact"
)

const mostViolations = 10

// Violation is one thing that is wrong with a call's arguments.
type Violation struct {
	Argument string `json:"argument,omitempty"` // "filter.tags[2]"; empty for the arguments as a whole
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"` // as JSON, shortened
	Problem  string `json:"problem,omitempty"`
}

// String reads "limit: expected integer, got "ten"".
func (v Violation) String() string {
	text := v.Problem
	if text == "" {
		text = fmt.Sprintf("expected %s, got %s", v.Expected, v.Got)
	}
	if v.Argument == "" {
		return text
	}
	return v.Argument + ": " + text
}

// violations describes what the checker found, at most mostViolations.
func violations(e *jsonschema.ValidationError, value any, root *jsonschema.Schema) []Violation {
	var all []Violation
	for _, leaf := range leaves(e) {
		all = append(all, describe(leaf, value, root)...)
	}
	slices.SortStableFunc(all, func(a, b Violation) int { return strings.Compare(a.Argument, b.Argument) })
	all = slices.Compact(all)
	for i := range all { // names and messages may quote at any length
		all[i].Argument, all[i].Problem = redact.Cut(all[i].Argument, 160), redact.Cut(all[i].Problem, 320)
	}
	if more := len(all) - mostViolations; more > 0 {
		all = append(all[:mostViolations], Violation{Problem: fmt.Sprintf("and %d more", more)})
	}
	return all
}

// leaves are the findings that mean something by themselves. Of alternatives that all
// failed only the closest is reported.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return closest(e)
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

// closest is the alternative that failed at the deepest place. Alternatives that differ
// only in the type they want are reported as one.
func closest(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var best []*jsonschema.ValidationError
	var wanted []string
	got := ""
	for _, cause := range e.Causes {
		found := leaves(cause)
		if t, ok := found[0].ErrorKind.(*kind.Type); ok && len(found[0].InstanceLocation) == len(e.InstanceLocation) {
			wanted, got = append(wanted, t.Want...), t.Got
			continue
		}
		if best == nil || depthOf(found) > depthOf(best) || depthOf(found) == depthOf(best) && len(found) < len(best) {
			best = found
		}
	}
	if best != nil {
		return best
	}
	slices.Sort(wanted)
	return []*jsonschema.ValidationError{{
		SchemaURL: e.SchemaURL, InstanceLocation: e.InstanceLocation,
		ErrorKind: &kind.Type{Got: got, Want: slices.Compact(wanted)},
	}}
}

func depthOf(found []*jsonschema.ValidationError) int {
	depth := 0
	for _, leaf := range found {
		depth = max(depth, len(leaf.InstanceLocation))
	}
	return depth
}

// describe says what a finding means for the caller.
func describe(leaf *jsonschema.ValidationError, value any, root *jsonschema.Schema) []Violation {
	place := leaf.InstanceLocation
	argument, got := path(place), shownValue(at(value, place))
	switch k := leaf.ErrorKind.(type) {
	case *kind.Type:
		return []Violation{{Argument: argument, Expected: strings.Join(k.Want, " or "), Got: got}}
	case *kind.Enum:
		return []Violation{{Argument: argument, Expected: "one of " + alternatives(k.Want), Got: got}}
	case *kind.Const:
		return []Violation{{Argument: argument, Expected: shownValue(k.Want), Got: got}}
	case *kind.Required:
		others := unknownKeys(at(value, place), schemaAt(root, place))
		return each(k.Missing, func(name string) Violation {
			return Violation{Argument: inside(argument, name), Problem: missingArgument(name, others)}
		})
	case *kind.AdditionalProperties:
		known := properties(schemaAt(root, place))
		return each(k.Properties, func(name string) Violation {
			return Violation{Argument: inside(argument, name), Problem: unknownArgument(name, known)}
		})
	}
	if expected := bound(leaf.ErrorKind); expected != "" {
		return []Violation{{Argument: argument, Expected: expected, Got: got}}
	}
	_, problem, _ := strings.Cut(leaf.Error(), "': ") // "at '/path': what is wrong"
	return []Violation{{Argument: argument, Got: got, Problem: problem + ", got " + got}}
}

// bound says what an exceeded limit expects; empty for other findings.
func bound(found jsonschema.ErrorKind) string {
	switch k := found.(type) {
	case *kind.MinLength:
		return "at least " + counted(k.Want, "character")
	case *kind.MaxLength:
		return "at most " + counted(k.Want, "character")
	case *kind.MinItems:
		return "at least " + counted(k.Want, "item")
	case *kind.MaxItems:
		return "at most " + counted(k.Want, "item")
	case *kind.MinProperties:
		return "at least " + counted(k.Want, "key")
	case *kind.MaxProperties:
		return "at most " + counted(k.Want, "key")
	case *kind.Minimum:
		return "at least " + number(k.Want)
	case *kind.Maximum:
		return "at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "less than " + number(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + number(k.Want)
	case *kind.Pattern:
		return "text that matches " + k.Want
	}
	return ""
}

func number(r *big.Rat) string {
	if r.IsInt() && r.Num().IsInt64() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func each(names []string, f func(string) Violation) []Violation {
	all := make([]Violation, len(names))
	for i, name := range names {
		all[i] = f(name)
	}
	return all
}

// unknownKeys lists the keys of an object that its schema does not have, but accepts: others
// are reported themselves.
func unknownKeys(value any, s *jsonschema.Schema) []string {
	object, _ := value.(map[string]any)
	if s == nil || s.AdditionalProperties == false {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(key string) bool { return s.Properties[key] != nil })
}

// missingArgument says which of the other keys may be the argument, misspelled.
func missingArgument(name string, others []string) string {
	if close := similar(name, others, 1); len(close) > 0 {
		return fmt.Sprintf("required but missing, did you mean it by %q?", close[0])
	}
	return "required but missing"
}

func unknownArgument(name string, known []string) string {
	if close := similar(name, known, 1); len(close) > 0 {
		return fmt.Sprintf("unknown argument, did you mean %q?", close[0])
	}
	return "unknown argument"
}

// schemaAt is the schema of a value at a place, as far as simple nesting leads there, else
// nil.
func schemaAt(s *jsonschema.Schema, place []string) *jsonschema.Schema {
	for _, step := range place {
		for s != nil && s.Ref != nil {
			s = s.Ref
		}
		if s == nil {
			return nil
		}
		s = s.Properties[step]
	}
	return s
}

func properties(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Properties))
}

// at finds the value at a place.
func at(value any, place []string) any {
	for _, step := range place {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		}
	}
	return value
}

// path writes a place as people do: "filter.tags[2]".
func path(place []string) string {
	var b strings.Builder
	for i, step := range place {
		_, err := strconv.Atoi(step)
		switch {
		case err == nil:
			b.WriteString("[" + step + "]")
		case i > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

func inside(argument, name string) string {
	if argument == "" {
		return name
	}
	return argument + "." + name
}

func alternatives(values []any) string {
	shown := make([]string, 0, len(values))
	for _, v := range values[:min(len(values), 20)] {
		shown = append(shown, shownValue(v))
	}
	if more := len(values) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return strings.Join(shown, ", ")
}

// shownValue writes a value as JSON, shortened.
func shownValue(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return shortened(raw)
}

func shortened(raw []byte) string { return redact.Cut(string(raw), 80) }
