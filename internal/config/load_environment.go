package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
)

// Environment is the process environment. It is a parameter so that tests can set it.
type Environment map[string]string

// ProcessEnvironment reads "KEY=value" pairs as os.Environ gives them.
func ProcessEnvironment(pairs []string) Environment {
	env := make(Environment, len(pairs))
	for _, pair := range pairs {
		if key, value, ok := strings.Cut(pair, "="); ok {
			env[key] = value
		}
	}
	return env
}

const (
	configVariable = "LUANETTE_CONFIG"
	keyVariable    = "LUANETTE_KEY"   // for commands that connect to a server
	testVariables  = "LUANETTE_TEST_" // used by our own tests; not settings
)

func (l *Loaded) readEnvironment(env Environment) error {
	byVariable := map[string]setting{}
	for _, s := range settingsOf(&l.Config) {
		byVariable[s.variable()] = s
		if err := l.readAlias(s, env); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, "LUANETTE_") || strings.HasPrefix(name, testVariables) || name == configVariable || name == keyVariable {
			continue
		}
		if env[name] == "" { // as with other programs, an empty variable is not set
			continue
		}
		s, ok := byVariable[name]
		if !ok {
			f := fault.New(fault.Config, "environment: unknown variable %s", name)
			if near := suggest.Names(name, slices.Sorted(maps.Keys(byVariable)), 1); len(near) > 0 {
				return f.WithHint("did you mean %s? `luanette config show` lists them all", near[0])
			}
			return f.WithHint("`luanette config show` lists the known ones")
		}
		if err := s.set(env[name]); err != nil {
			return fault.Wrap(fault.Config, err, "environment: %s=%q", name, env[name])
		}
		l.Origins[s.key] = "environment"
	}
	return nil
}

// readAlias reads a setting from its alternative variable.
func (l *Loaded) readAlias(s setting, env Environment) error {
	value := env[s.alias]
	if value == "" {
		return nil
	}
	if strings.HasSuffix(s.alias, "_MS") {
		value += "ms"
	}
	if err := s.set(value); err != nil {
		return fault.Wrap(fault.Config, err, "environment: %s=%q", s.alias, value)
	}
	l.Origins[s.key] = "environment"
	return nil
}
