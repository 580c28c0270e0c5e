package recording

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Rules say how the values at some paths of a request's params are compared; all others
// must be equal. A path is like "arguments.items.*.id", where * stands for any key or
// index. A rule is one of:
//
//	any       the value must be there and may be anything
//	ignore    the value may be anything, and may be missing
//	/REGEXP/  the value, as text, must match the regular expression
type Rules map[string]string

// The rules that are not regular expressions.
const (
	ruleAny    = "any"
	ruleIgnore = "ignore"
)

// check reports a rule that is not one.
func (r Rules) check() error {
	for _, path := range slices.Sorted(maps.Keys(r)) {
		if _, err := compile(r[path]); err != nil {
			return fmt.Errorf("match %q: %w", path, err)
		}
	}
	return nil
}

// pattern is a compiled rule.
type pattern struct {
	ignore bool
	text   *regexp.Regexp // nil: any value
}

func compile(rule string) (pattern, error) {
	switch {
	case rule == ruleAny:
		return pattern{}, nil
	case rule == ruleIgnore:
		return pattern{ignore: true}, nil
	case len(rule) >= 2 && rule[0] == '/' && rule[len(rule)-1] == '/':
		text, err := regexp.Compile(rule[1 : len(rule)-1])
		return pattern{text: text}, err
	}
	return pattern{}, fmt.Errorf(`%q is neither "any", "ignore" nor a regular expression such as "/^draft/"`, rule)
}

// patterns are compiled rules by path. Those of an exchange come before those of the
// recording.
type patterns []struct {
	path []string
	pattern
}

func compileAll(sets ...Rules) (all patterns) {
	for _, rules := range sets {
		for _, path := range slices.Sorted(maps.Keys(rules)) {
			compiled, err := compile(rules[path])
			if err != nil {
				continue // Load has checked them
			}
			all = append(all, struct {
				path []string
				pattern
			}{strings.Split(path, "."), compiled})
		}
	}
	return all
}

// find returns the pattern for the value at a path.
func (p patterns) find(path []string) (pattern, bool) {
	for _, candidate := range p {
		if slices.EqualFunc(candidate.path, path, func(want, got string) bool { return want == "*" || want == got }) {
			return candidate.pattern, true
		}
	}
	return pattern{}, false
}
