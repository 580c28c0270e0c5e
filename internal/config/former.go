package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/config/toml"

	"github.com/luanette/luanette/internal/base/fault"
)

// A renamed setting or section has its former key in the tag `was`, and renamed values in
// `wasvalues`. Files and variables that use the former key still work, with a warning.

// retired are former settings without a successor. They are ignored with a warning.
var retired = map[string]string{
	"mcp.code_threshold": "mcp.menu does not depend on the number of tools",
}

// formerSection returns the former prefix of a section's settings; "" if it has none.
func formerSection(section reflect.StructField, outer, name string) string {
	if was := section.Tag.Get("was"); was != "" {
		return was + "."
	}
	if outer != "" {
		return outer + name + "."
	}
	return ""
}

// current returns a value of the former setting as it is written now.
func (s setting) current(value string) string {
	for pair := range strings.SplitSeq(s.values, ",") {
		if was, now, ok := strings.Cut(pair, "="); ok && was == value {
			return now
		}
	}
	return value
}

// renamed returns the setting that had the key before it was renamed.
func (l *Loaded) renamed(former string) (setting, bool) {
	for _, s := range settingsOf(&l.Config) {
		if s.was == former {
			return s, true
		}
	}
	return setting{}, false
}

// setFormer sets a setting that the file has by its former key, on the given line.
func (l *Loaded) setFormer(s setting, text []byte, line int) error {
	var given map[string]any
	if err := toml.Unmarshal(text, &given); err != nil {
		return fault.Wrap(fault.Config, err, "%s", l.File)
	}
	if _, both := lookUp(given, s.key); both {
		return fault.New(fault.Config, "%s:%d: %s is the former name of %s, which the file also sets", l.File, line, s.was, s.key).
			WithHint("remove %s", s.was)
	}
	value, _ := lookUp(given, s.was)
	if err := s.set(s.current(textOf(value))); err != nil {
		return fault.Wrap(fault.Config, err, "%s:%d: %s", l.File, line, s.was)
	}
	l.Origins[s.key] = "file"
	l.former = append(l.former, s.was)
	l.Warnings = append(l.Warnings, fmt.Sprintf("%s:%d: %s is now called %s", l.File, line, s.was, s.key)+s.renamedValue(textOf(value)))
	return nil
}

// renamedValue says what a former value is called now, as the end of a warning.
func (s setting) renamedValue(value string) string {
	if now := s.current(value); now != value {
		return fmt.Sprintf(", and %s is %s", value, now)
	}
	return ""
}

// textOf returns a value of a file as a variable would have it.
func textOf(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = fmt.Sprint(item)
	}
	return strings.Join(items, ",")
}

// setFormerKey handles a key of the file that is unknown now: a former setting or section,
// or one that was retired. It returns the keys that never were settings.
func (l *Loaded) setFormerKey(key string, text []byte, line int) (unknown []string, err error) {
	if why, ok := retired[key]; ok {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%s:%d: %s is ignored: %s", l.File, line, key, why))
		return nil, nil
	}
	if slices.Contains(l.former, key) { // the decoder reports a section and those in it
		return nil, nil
	}
	if s, ok := l.renamed(key); ok {
		return nil, l.setFormer(s, text, line)
	}
	if !l.wasSection(key) {
		return []string{key}, nil
	}
	var given map[string]any
	if err := toml.Unmarshal(text, &given); err != nil {
		return nil, fault.Wrap(fault.Config, err, "%s", l.File)
	}
	section, _ := lookUp(given, key)
	table, _ := section.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		more, err := l.setFormerKey(key+"."+name, text, line)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
	}
	return unknown, nil
}

// wasSection reports whether settings had keys in a section.
func (l *Loaded) wasSection(key string) bool {
	return slices.ContainsFunc(settingsOf(&l.Config), func(s setting) bool { return strings.HasPrefix(s.was, key+".") })
}

// currentVariables returns the environment with former variables under their new names.
// If both are set, the new one takes precedence.
func (l *Loaded) currentVariables(env Environment) Environment {
	current := maps.Clone(env)
	for _, s := range settingsOf(&l.Config) {
		former := variableOf(s.was)
		value, ok := env[former]
		if s.was == "" || !ok {
			continue
		}
		delete(current, former)
		if _, both := env[s.variable()]; !both {
			current[s.variable()] = s.current(value)
		}
		l.former = append(l.former, s.was)
		l.Warnings = append(l.Warnings, fmt.Sprintf("environment: %s is now called %s", former, s.variable())+s.renamedValue(value))
	}
	for key, why := range retired {
		if _, ok := env[variableOf(key)]; ok {
			delete(current, variableOf(key))
			l.Warnings = append(l.Warnings, fmt.Sprintf("environment: %s is ignored: %s", variableOf(key), why))
		}
	}
	return current
}

// lookUp returns the value at a dotted key of nested tables.
func lookUp(table map[string]any, key string) (any, bool) {
	first, rest, nested := strings.Cut(key, ".")
	value, ok := table[first]
	if !ok || !nested {
		return value, ok
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return lookUp(inner, rest)
}
