package config

import (
	"reflect"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/toml"
)

// Starts configures how programs are started as upstreams. Its settings are in the
// table upstreams, beside the tables of the upstreams themselves, so the decoder does
// not see them: see takeStarts.
type Starts struct {
	Parallel int      `toml:"parallel_starts" help:"how many programs may start at the same time; 0 means two per processor; those that a call waits for come first"`
	Timeout  Duration `toml:"start_timeout" help:"how long a program may take until it is connected, unless its own start_timeout says otherwise"`
}

func (s Starts) check() error {
	if s.Parallel < 0 || s.Timeout < 0 {
		return fault.New(fault.Config, "upstreams.parallel_starts and upstreams.start_timeout must not be negative")
	}
	return nil
}

// sectionOf is the name of the field's table in a file.
func sectionOf(field reflect.StructField) string {
	if section := field.Tag.Get("section"); section != "" {
		return section
	}
	name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
	return name
}

// takeStarts reads the settings of Starts, and returns the text without them, line by
// line the same.
func (l *Loaded) takeStarts(text []byte) ([]byte, error) {
	var given struct {
		Upstreams map[string]any `toml:"upstreams"`
	}
	if toml.Unmarshal(text, &given) != nil {
		return text, nil //nolint:nilerr // the decoder reports it
	}
	lines := toml.Lines(text, "upstreams")
	all := strings.SplitAfter(string(text), "\n")
	for _, s := range walkSettings(reflect.ValueOf(&l.Starts).Elem(), "", "") {
		value, ok := given.Upstreams[s.key]
		if _, isTable := value.(map[string]any); !ok || isTable {
			continue
		}
		line := lines[s.key]
		if line == 0 {
			continue // the decoder reports it
		}
		encoded, err := toml.Marshal(map[string]any{s.key: value})
		if err == nil {
			err = toml.Unmarshal(encoded, &l.Starts)
		}
		if err != nil {
			return nil, fault.New(fault.Config, "%s:%d: upstreams.%s: %v is not valid", l.File, line, s.key, value).
				WithHint("docs/configuration.md lists every key with its type")
		}
		all[line-1] = strings.Repeat(" ", len(strings.TrimRight(all[line-1], "\n"))) + "\n"
	}
	return []byte(strings.Join(all, "")), nil
}
