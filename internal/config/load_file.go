package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/config/toml"
)

func (l *Loaded) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Config, err, "read configuration").
			WithHint("name another file with --config, or omit it to start with the defaults")
	}
	l.File = path
	rest, err := l.takeStarts(text)
	if err != nil {
		return err
	}
	err = toml.Decode(rest, &l.Config)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		err = l.unknownKeys(text, unknown)
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
var wrongType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^cannot (?:decode|unmarshal) TOML (\w+) into (?:struct field \S+|a Go value) of type (\S+)`)
})

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

// unknownKeys handles the keys that the decoder does not know: former keys set their
// settings, all others are reported.
func (l *Loaded) unknownKeys(text []byte, unknown *toml.StrictMissingError) error {
	var problems, hints []string
	for _, missing := range unknown.Errors {
		line, column := missing.Position()
		unknown, err := l.setFormerKey(strings.Join(missing.Key(), "."), text, line)
		if err != nil {
			return err
		}
		for _, key := range unknown {
			problems = append(problems, fmt.Sprintf("%s:%d:%d: unknown key %q", l.File, line, column, key))
			if near := nearestKey(key); near != "" {
				hints = append(hints, fmt.Sprintf("did you mean %q instead of %q?", near, key))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	hints = append(hints, "docs/configuration.md lists every key")
	return fault.New(fault.Config, "%s", strings.Join(problems, "\n")).WithHint("%s", strings.Join(hints, " "))
}

// nearestKey suggests a known key. A key of an upstream is compared with the
// fields that any upstream has.
func nearestKey(key string) string {
	parts := strings.Split(key, ".")
	prefix, known := "", settingKeys()
	if len(parts) == 3 && parts[0] == "upstreams" {
		prefix, key, known = parts[0]+"."+parts[1]+".", parts[2], upstreamKeys()
	}
	if len(parts) == 2 && parts[0] == "policy" {
		prefix, key, known = "policy.", parts[1], []string{"key", "tool", "do", "by", "count", "reason"}
	}
	if near := suggest.Names(key, known, 1); len(near) > 0 {
		return prefix + near[0]
	}
	return ""
}
