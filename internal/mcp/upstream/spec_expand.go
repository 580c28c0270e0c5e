package upstream

import (
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/tagged"
)

// expander replaces variables like the clients whose files we read: ${VAR},
// ${VAR:-default} and ${env:VAR}. Variables that are not set, and all other forms,
// stay as they are, with a warning that names them but not their values, which may
// be secrets.
type expander struct {
	getenv func(string) (string, bool)
	warn   func(format string, args ...any)
	secret bool // references to secrets are allowed; they are resolved when they are used
}

// Expand replaces ${VAR}, ${VAR:-default} and ${env:VAR} in the settings that are tagged
// vars. Warnings name what could not be replaced.
func (s Spec) Expand(getenv func(string) (string, bool)) (expanded Spec, warnings []string) {
	e := expander{getenv: getenv, warn: func(format string, args ...any) {
		warnings = append(warnings, s.Name+": "+fmt.Sprintf(format, args...))
	}}
	_ = tagged.Texts(&s.Settings, "vars", func(kind, text string) (string, error) {
		e.secret = kind == "secret"
		return e.expand(text), nil
	})
	return s, warnings
}

func (e expander) expand(text string) string {
	var out strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		size := strings.IndexByte(text[start:], '}')
		if size < 0 {
			break
		}
		form := text[start : start+size+1]
		out.WriteString(text[:start])
		out.WriteString(e.variable(form))
		text = text[start+size+1:]
	}
	out.WriteString(text)
	return out.String()
}

// variable is the value of one form.
func (e expander) variable(form string) string {
	inner := form[2 : len(form)-1]
	if e.secret && (strings.HasPrefix(inner, "file:") || strings.HasPrefix(inner, "keyring:")) {
		return form
	}
	if personalForm().MatchString(form) { // replaced for each person
		return form
	}
	name, fallback, hasFallback := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !isVariable(name) {
		e.warn("%s is not a supported form and stays as it is", form)
		return form
	}
	value, ok := e.getenv(name)
	switch {
	case ok && (value != "" || !hasFallback):
		return value
	case hasFallback:
		return fallback
	}
	e.warn("environment variable %s is not set, %s stays as it is", name, "${"+inner+"}")
	return form
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digit := r >= '0' && r <= '9'
		if !letter && (i == 0 || !digit) {
			return false
		}
	}
	return name != ""
}

// parseEnvFile reads NAME=value lines. Lines that begin with # are comments, and
// quotes around a value are removed.
func parseEnvFile(text string) (map[string]string, error) {
	env := map[string]string{}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !isVariable(name) {
			return nil, fmt.Errorf("line %d is not NAME=value", n+1)
		}
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		env[name] = value
	}
	return env, nil
}
