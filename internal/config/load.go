package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/mcp/faultinject"
)

// Sources are the sources of a configuration. In ascending precedence they are the
// defaults, the file, the environment and the flags.
type Sources struct {
	File  string            // explicit path; with "" the usual places are searched, and no file is required
	Env   Environment       // LUANETTE_* and the variables that the defaults need (HOME, XDG_*)
	Flags map[string]string // by key, such as "listen" or "log.level"; only those given
	// Change changes what was read, each time; may be nil. What it sets needs no trust.
	Change func(*Config)
}

// Loaded is a configuration together with where each value came from.
type Loaded struct {
	Config
	File    string            // the file read, or ""
	Origins map[string]string // by key: "file", "environment", "environment NAME" or "flag"; absent means default

	Warnings []string // what a person should look at

	sources  Sources   // to read the configuration again
	waiting  []pending // settings of the file that take effect at the next start
	trusting trusting
}

// originFile is the origin of what the file sets.
const originFile = "file"

// Load reads the configuration. Every mistake is an invalid_config fault that
// names the place and the key and suggests the nearest known one.
func Load(sources Sources) (*Loaded, error) {
	path, err := configFile(sources)
	if err != nil {
		return nil, err
	}
	return loadFrom(path, sources)
}

// Reread reads the configuration again from the file that was read before, or from
// the user's own file if it was created since.
func (l *Loaded) Reread(env Environment) (*Loaded, error) {
	path := l.File
	if own := UserFile(env); path == "" {
		if _, err := os.Stat(own); err == nil {
			path = own
		}
	}
	return loadFrom(path, l.sources)
}

// loadFrom is Load with the file at path; "" is none.
func loadFrom(path string, sources Sources) (*Loaded, error) {
	loaded := &Loaded{Config: defaults(sources.Env), Origins: map[string]string{}, sources: sources}
	if path != "" {
		if err := loaded.readFile(path); err != nil {
			return nil, err
		}
		if err := loaded.spreadOrgs(); err != nil {
			return nil, err
		}
	}
	if err := loaded.readEnvironment(sources.Env); err != nil {
		return nil, err
	}
	if err := loaded.readFlags(sources.Flags); err != nil {
		return nil, err
	}
	if path != "" {
		loaded.trusting.found = foundHere(path, sources)
		if err := loaded.withhold(sources.Env); err != nil {
			return nil, err
		}
	}
	if sources.Change != nil {
		sources.Change(&loaded.Config)
	}
	loaded.readModelVariables(sources.Env)
	if path == serviceFile && loaded.Origins["data"] == "" {
		loaded.Data = serviceData
	}
	if loaded.Database == "" {
		loaded.Database = "sqlite:" + filepath.Join(loaded.Data, "luanette.db")
	}
	return loaded, loaded.check()
}

func (l *Loaded) readFlags(flags map[string]string) error {
	for _, s := range settingsOf(&l.Config) {
		value, given := flags[s.key]
		if !given {
			continue
		}
		if err := s.set(value); err != nil {
			return fault.Wrap(fault.Config, err, "flag for %s", s.key)
		}
		l.Origins[s.key] = "flag"
	}
	return nil
}

func (l *Loaded) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Config, err, "read configuration").
			WithHint("name another file with --config, or omit it to start with the defaults")
	}
	l.File = path
	err = toml.Decode(text, &l.Config)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		err = l.unknownKeys(string(text), unknown)
	} else if err != nil {
		err = decodeFault(path, string(text), err)
	}
	l.markFileKeys(text)
	return err
}

// decodeFault turns the decoder's error into "file:line: key: problem".
func decodeFault(path, text string, err error) error {
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return fault.Wrap(fault.Config, err, "%s", path)
	}
	line, column := bad.Position()
	problem := strings.TrimPrefix(bad.Error(), "toml: ")
	if m := wrongType().FindStringSubmatch(problem); m != nil {
		problem = fmt.Sprintf("expected %s, got %s", m[2], m[1])
	}
	if key := keyAt(text, line); key != "" {
		problem = key + ": " + problem
	}
	return fault.New(fault.Config, "%s:%d:%d: %s", path, line, column, problem).
		WithHint("docs/configuration.md lists every key with its type")
}

// wrongType matches the decoder's error about a value of the wrong type.
var wrongType = lazyregexp.New(`^cannot (?:decode|unmarshal) TOML (\w+) into (?:struct field \S+|a Go value) of type (\S+)`)

// keyAt returns the key on a line, with its section, for errors in which the decoder
// names only the position.
func keyAt(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	key, _, assigns := strings.Cut(lines[line-1], "=")
	if !assigns {
		return ""
	}
	key = strings.TrimSpace(key)
	for i := line - 2; i >= 0; i-- {
		if section := strings.TrimSpace(lines[i]); strings.HasPrefix(section, "[") && strings.HasSuffix(section, "]") {
			return strings.Trim(section, "[] ") + "." + key
		}
	}
	return key
}

// unknownKeys reports the keys that the decoder does not know.
func (l *Loaded) unknownKeys(text string, unknown *toml.StrictMissingError) error {
	lines := strings.Split(text, "\n")
	var problems, hints []string
	for _, missing := range unknown.Errors {
		line, column := missing.Position()
		path := missing.Key()
		if line >= 1 && line <= len(lines) { // the decoder leaves out the keys of inline tables
			last := len(path) - 1
			path = slices.Concat(path[:last], inlineKeys(lines[line-1], column-1), path[last:])
		}
		key := strings.Join(path, ".")
		problems = append(problems, fmt.Sprintf("%s:%d:%d: unknown key %q", l.File, line, column, key))
		if near := nearestKey(key); near != "" {
			hints = append(hints, fmt.Sprintf("did you mean %q instead of %q?", near, key))
		}
	}
	hints = append(hints, "docs/configuration.md lists every key")
	return fault.New(fault.Config, "%s", strings.Join(problems, "\n")).WithHint("%s", strings.Join(hints, " "))
}

// inlineKeys returns the keys of the inline tables that are open at an offset of a line:
// faults in "faults = { drp = 0.1 }".
func inlineKeys(line string, offset int) (open []string) {
	tokens := inlineToken().FindAllString(line[:min(max(offset, 0), len(line))], -1)
	key := ""
	for _, token := range tokens {
		switch token {
		case "{":
			open = append(open, key)
		case "}":
			open = open[:max(len(open)-1, 0)]
		case "=":
		default:
			key = strings.Trim(token, `"' `)
		}
	}
	return open
}

// inlineToken matches a brace, an equals sign, a quoted text, or anything else between them.
var inlineToken = lazyregexp.New(`[{}=]|"(?:\\.|[^"\\])*"|'[^']*'|[^\s{}=,"']+`)

// nearestKey suggests a known key. A key of an upstream is compared with the
// fields that any upstream has.
func nearestKey(key string) string {
	parts := strings.Split(key, ".")
	prefix, known := "", settingKeys()
	if len(parts) == 3 && parts[0] == "upstreams" {
		prefix, key, known = parts[0]+"."+parts[1]+".", parts[2], keysOf[Upstream]()
	}
	if len(parts) == 4 && parts[0] == "upstreams" && parts[2] == "faults" {
		prefix, key, known = strings.Join(parts[:3], ".")+".", parts[3], keysOf[faultinject.Faults]()
	}
	if len(parts) == 2 && parts[0] == "policy" {
		prefix, key, known = "policy.", parts[1], keysOf[PolicyRule]()
	}
	if near := suggest.Names(key, known, 1); len(near) > 0 {
		return prefix + near[0]
	}
	return ""
}

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
			return unknownVariable(name, slices.Sorted(maps.Keys(byVariable)))
		}
		if err := s.set(env[name]); err != nil {
			return fault.Wrap(fault.Config, err, "environment: %s=%q", name, env[name])
		}
		l.Origins[s.key] = "environment"
	}
	return nil
}

// unknownVariable is the error about a variable that is none of the known ones.
func unknownVariable(name string, known []string) error {
	f := fault.New(fault.Config, "environment: unknown variable %s", name)
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return f.WithHint("did you mean %s? `luanette config show` lists them all", near[0])
	}
	return f.WithHint("`luanette config show` lists the known ones")
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
