package config

import (
	"fmt"
	"maps"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/luanette/luanette/internal/base/fault"
)

// A renamed setting has its former key in the tag `was`. Files and variables that use
// the former key still work, with a warning.

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
	if err := s.set(fmt.Sprint(value)); err != nil {
		return fault.Wrap(fault.Config, err, "%s:%d: %s", l.File, line, s.was)
	}
	l.Origins[s.key] = "file"
	l.Warnings = append(l.Warnings, fmt.Sprintf("%s:%d: %s is now called %s", l.File, line, s.was, s.key))
	return nil
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
			current[s.variable()] = value
		}
		l.Warnings = append(l.Warnings, fmt.Sprintf("environment: %s is now called %s", former, s.variable()))
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
