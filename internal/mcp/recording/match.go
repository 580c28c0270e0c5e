package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/redact"
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

// missing stands for a value that is not there.
type missing struct{}

// comparison collects where a request differs from a recorded one.
type comparison struct {
	rules       patterns
	differences []string
}

// differences lists where got differs from want, for people.
func differences(want, got any, rules patterns) []string {
	c := &comparison{rules: rules}
	c.compare(nil, want, got)
	return c.differences
}

func (c *comparison) compare(path []string, want, got any) {
	if rule, ok := c.rules.find(path); ok {
		c.apply(path, rule, got)
		return
	}
	switch wanted := want.(type) {
	case map[string]any:
		if found, ok := got.(map[string]any); ok {
			c.compareObjects(path, wanted, found)
			return
		}
	case []any:
		if found, ok := got.([]any); ok && len(found) == len(wanted) {
			for i := range wanted {
				c.compare(extend(path, strconv.Itoa(i)), wanted[i], found[i])
			}
			return
		}
	default:
		if sameScalar(want, got) || fitsMask(want, got) {
			return
		}
	}
	c.add(path, got, "recorded: "+show(want))
}

func (c *comparison) compareObjects(path []string, want, got map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		found, ok := got[key]
		if !ok {
			found = missing{}
		}
		c.compare(extend(path, key), want[key], found)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			c.compare(extend(path, key), missing{}, got[key])
		}
	}
}

// apply compares a value with a rule.
func (c *comparison) apply(path []string, rule pattern, got any) {
	switch {
	case rule.ignore:
	case got == (missing{}):
		c.add(path, got, "a rule requires it")
	case rule.text != nil && !rule.text.MatchString(plain(got)):
		c.add(path, got, "the rule is /"+rule.text.String()+"/")
	}
}

func (c *comparison) add(path []string, got any, why string) {
	name := strings.Join(path, ".")
	if name == "" {
		name = "params"
	}
	c.differences = append(c.differences, fmt.Sprintf("%s is %s (%s)", name, show(got), why))
}

// fitsMask reports whether a value is equal to a recorded text except where secrets are
// masked in it.
func fitsMask(want, got any) bool {
	recorded, _ := want.(string)
	if got == (missing{}) || !strings.Contains(recorded, redact.Hidden) {
		return false
	}
	text, parts := plain(got), strings.Split(recorded, redact.Hidden)
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// extend returns the path of a member, in memory of its own.
func extend(path []string, name string) []string {
	return append(path[:len(path):len(path)], name)
}

// sameScalar compares values that are neither objects nor arrays. Numbers are equal if
// they have the same value, as 1 and 1.0.
func sameScalar(want, got any) bool {
	a, isNumber := want.(json.Number)
	b, bothNumbers := got.(json.Number)
	if !isNumber || !bothNumbers {
		switch got.(type) {
		case map[string]any, []any:
			return false
		}
		return want == got
	}
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && (!isInteger(a) || !isInteger(b))
}

func isInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// decode reads JSON; absent params are an empty object.
func decode(raw json.RawMessage) any {
	if len(raw) == 0 {
		return map[string]any{}
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return string(raw)
	}
	return value
}

// encode writes a value as JSON, with sorted keys.
func encode(value any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return json.RawMessage("null") // what was decoded encodes
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// plain is a value as text: strings without quotes.
func plain(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return string(encode(value))
}

// show formats a value for people.
func show(value any) string {
	if value == (missing{}) {
		return "missing"
	}
	return redact.Cut(string(encode(value)), longestShown)
}

// longestShown is how much of a value an error shows, in bytes.
const longestShown = 120
