package config

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/toml"
)

// LiveSetting is a setting that takes effect when the file changes, as a person changes it.
type LiveSetting struct {
	Key     string   `json:"key"`
	Value   any      `json:"value"`
	Kind    string   `json:"kind"` // text, bool, number or list
	Choices []string `json:"choices,omitempty"`
	Fixed   string   `json:"fixed,omitempty"` // what sets it in place of the file: the environment or a flag
	Help    string   `json:"help"`
}

// LiveSettings are the settings that take effect when the file changes, and on which line of
// the file each setting is that the file has. Secrets, and tables, are not among the former.
func (l *Loaded) LiveSettings() (list []LiveSetting, lines map[string]int) {
	for _, s := range settingsOf(&l.Config) {
		if !s.live || s.secret != "" {
			continue
		}
		shown := LiveSetting{Key: s.key, Value: s.field.Interface(), Kind: s.kind(), Choices: s.choices, Help: s.help}
		if origin := l.Origins[s.key]; s.isFixed(origin) {
			shown.Fixed = origin
		}
		list = append(list, shown)
	}
	text, err := os.ReadFile(l.File)
	if err != nil {
		return list, nil // there is no file yet
	}
	lines = map[string]int{}
	for _, s := range settingsOf(&l.Config) {
		table, name := splitKey(s.key)
		if line := toml.Lines(text, table...)[name]; line > 0 {
			lines[s.key] = line
		}
	}
	return list, lines
}

// isFixed reports whether a value of such an origin takes precedence over the file.
func (s setting) isFixed(origin string) bool {
	return origin == "environment" || origin == "flag" || s.alias != "" && origin == "environment "+s.alias
}

// kind is how a value is entered.
func (s setting) kind() string {
	switch s.field.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	}
	return "text"
}

// splitKey separates the name of a setting from the tables it is in.
func splitKey(key string) (table []string, name string) {
	parts := strings.Split(key, ".")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

// SetLive changes settings of the configuration file that take effect when it changes; null
// removes one. It returns what the file had before. The rest of the file does not change.
func SetLive(ctx context.Context, sources Sources, values map[string]json.RawMessage) (before map[string]json.RawMessage, err error) {
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return nil, err
	}
	before = map[string]json.RawMessage{}
	for _, s := range settingsOf(&loaded.Config) {
		value, wanted := values[s.key]
		if !wanted {
			continue
		}
		if before[s.key], err = loaded.change(s, value); err != nil {
			return nil, err
		}
	}
	for key := range values {
		if before[key] == nil {
			return nil, fault.New(fault.InvalidParams, "there is no setting %q", key).WithHint("`luanette config show` lists them")
		}
	}
	if err := loaded.check(); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err))
	}
	err = edit(loaded.File, func(text string) (string, error) {
		changed := []byte(text)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if changed, err = setKey(changed, key, values[key]); err != nil {
				return "", err
			}
		}
		return string(changed), nil
	})
	if err != nil {
		return nil, err
	}
	return before, trustSettings(ctx, sources, slices.Collect(maps.Keys(values)))
}

// change gives a setting a value, and returns the one of the file: null if it has none.
func (l *Loaded) change(s setting, value json.RawMessage) (before json.RawMessage, err error) {
	switch origin := l.Origins[s.key]; {
	case !s.live:
		return nil, fault.New(fault.InvalidParams, "%s takes effect at the next start", s.key).WithHint("change it in %s, and start the server again", l.File)
	case s.isFixed(origin):
		return nil, fault.New(fault.Conflict, "%s is set by the %s, which takes precedence over the file", s.key, origin).WithHint("remove it there")
	case origin == originFile:
		if before, err = json.Marshal(s.shown()); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%s", s.key)
		}
	default:
		before = json.RawMessage("null")
	}
	if string(value) == "null" {
		return before, nil
	}
	if err := json.Unmarshal(value, s.field.Addr().Interface()); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "%s", s.key).WithHint("it is a %s", s.kind())
	}
	return before, nil
}

// setKey puts a value into the text of a file, whose table it adds if there is none.
func setKey(text []byte, key string, value json.RawMessage) ([]byte, error) {
	table, name := splitKey(key)
	if len(table) == 0 {
		return toml.SetFirst(text, name, value)
	}
	if changed, err := toml.SetValue(text, table, name, value); !errors.Is(err, toml.ErrNoHeader) {
		return changed, err
	}
	content, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write %s", key)
	}
	return toml.AppendObject(text, table, content), nil
}

// trustSettings trusts settings of the configuration file as they are now. It is for what
// wrote them for the owner.
func trustSettings(ctx context.Context, sources Sources, keys []string) error {
	return trustWritten(ctx, sources, func(key string) bool { return slices.Contains(keys, key) })
}

// AddRule puts a policy rule before the others of the configuration file, so that it decides.
func AddRule(sources Sources, rule PolicyRule) error {
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return err
	}
	loaded.Policy = slices.Insert(loaded.Policy, 0, rule)
	if err := loaded.check(); err != nil {
		return fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err))
	}
	return edit(loaded.File, func(text string) (string, error) {
		changed, err := toml.InsertEntry([]byte(text), "policy", rule)
		return string(changed), err
	})
}

// RemoveRule removes the first policy rule of the configuration file that equals one.
func RemoveRule(sources Sources, rule PolicyRule) error {
	loaded, err := Load(sources)
	if err != nil {
		return err
	}
	at := slices.Index(loaded.Policy, rule)
	if at < 0 {
		return fault.New(fault.NotFound, "the rule is not in %s", loaded.File).WithHint("it was changed or removed there")
	}
	return edit(loaded.File, func(text string) (string, error) {
		changed, err := toml.CutEntry([]byte(text), "policy", at)
		if errors.Is(err, toml.ErrNoHeader) {
			return "", fault.New(fault.Config, "the rules of %s have no headers of their own", filepath.Base(loaded.File)).WithHint("remove it from the file by hand")
		}
		return string(changed), err
	})
}
