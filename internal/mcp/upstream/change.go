package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/base/tagged"
)

// Change has values for settings by their keys, as JSON. null removes a setting; in a table of
// texts such as env, null keeps the value of a name, and names that are missing are removed.
type Change map[string]json.RawMessage

// Check refuses keys that no setting has.
func (c Change) Check() error {
	for _, key := range slices.Sorted(maps.Keys(c.renamed())) {
		if _, ok := tagged.Field(reflect.TypeFor[Settings](), key); !ok {
			return unknown(key)
		}
	}
	return nil
}

// TextChange is the change that gives settings values which somebody typed: as JSON, as text, or
// as a list with commas, whatever the setting has.
func TextChange(texts map[string]string) Change {
	change := Change{}
	for key, text := range texts {
		quoted, _ := json.Marshal(text)                   // texts always encode
		list, _ := json.Marshal(strings.Split(text, ",")) // so do these
		change[key] = quoted                              // Apply says what is wrong with it
		for _, value := range []json.RawMessage{json.RawMessage(text), quoted, list} {
			if json.Valid(value) && tagged.Set(new(Settings), key, value) == nil {
				change[key] = value
				break
			}
		}
	}
	return change
}

// Apply returns settings with the change, and the change with the values that are kept. After
// each key it asks check, which may be nil, so that the details of an error name the key as
// field.
func (c Change) Apply(to Settings, check func(key string, now Settings) error) (now Settings, filled Change, err error) {
	filled = c.renamed()
	for _, key := range slices.Sorted(maps.Keys(filled)) {
		if filled[key], err = to.set(key, filled[key]); err == nil && check != nil {
			err = check(key, to)
		}
		if err != nil {
			return to, nil, fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err)).WithDetails(map[string]string{"field": key})
		}
	}
	return to, filled, nil
}

// renamed returns the change with today's keys: timeouts were numbers, in nanoseconds where
// servers are stored and in milliseconds in requests.
func (c Change) renamed() Change {
	now := maps.Clone(c)
	for _, unit := range []string{"ms", "ns"} {
		if number, there := c["timeout_"+unit]; there {
			delete(now, "timeout_"+unit)
			now["timeout"] = fmt.Appendf(nil, "%q", string(number)+unit)
		}
	}
	return now
}

// set changes one setting, and returns its value with what is kept.
func (s *Settings) set(key string, value json.RawMessage) (json.RawMessage, error) {
	field, ok := tagged.Field(reflect.TypeFor[Settings](), key)
	if !ok {
		return nil, unknown(key)
	}
	if err := refuseMarks(value); err != nil {
		return nil, err
	}
	if known, isTable := reflect.ValueOf(*s).FieldByIndex(field.Index).Interface().(map[string]string); isTable {
		kept, err := withKept(known, value)
		if err != nil {
			return nil, err
		}
		value = kept
	}
	if err := tagged.Set(s, key, value); err != nil {
		var known *fault.Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, fault.New(fault.InvalidParams, "%s: %s is not valid", key, value).WithHint("docs/configuration.md lists every key with its type")
	}
	return value, nil
}

func unknown(key string) error {
	err := fault.New(fault.InvalidParams, "unknown setting %q", key)
	var keys []string
	for field := range reflect.TypeFor[Settings]().Fields() {
		keys = append(keys, tagged.Key(field))
	}
	if near := suggest.Names(key, keys, 1); len(near) > 0 {
		return err.WithHint("did you mean %q?", near[0])
	}
	return err.WithHint("docs/configuration.md lists those of an upstream")
}

// withKept returns a table in which null stands for the known value of a name.
func withKept(known map[string]string, value json.RawMessage) (json.RawMessage, error) {
	var given map[string]*string
	if json.Unmarshal(value, &given) != nil || given == nil {
		return value, nil //nolint:nilerr // to set it says what is wrong
	}
	filled := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text := given[name]
		if text == nil {
			kept, there := known[name]
			if !there {
				return nil, fault.New(fault.InvalidParams, "there is no value to keep for %s", name).WithHint("give its value")
			}
			text = &kept
		}
		filled[name] = *text
	}
	if len(filled) == 0 {
		return json.RawMessage("null"), nil
	}
	return json.Marshal(filled)
}

// refuseMarks refuses a value that was copied from what is shown in place of a secret.
func refuseMarks(value json.RawMessage) error {
	for _, mark := range []string{tagged.HiddenValue, redact.Hidden, "?…"} {
		if bytes.Contains(value, []byte(mark)) {
			return fault.New(fault.InvalidParams, "%s stands for a secret that is not shown", mark).WithHint("write the whole value, or a reference such as ${env:NAME}")
		}
	}
	return nil
}

// CheckAdded refuses settings that a server cannot have that was added while the program runs.
func (s Settings) CheckAdded() error {
	for _, key := range slices.Sorted(maps.Keys(tagged.Object(s))) {
		if field, _ := tagged.Field(reflect.TypeFor[Settings](), key); field.Tag.Get("added") == "" {
			return fault.New(fault.InvalidParams, "%s is for the configuration", key).
				WithHint("add the server to luanette.toml; while the program runs, servers are added by their url")
		}
	}
	return nil
}

// Hidden returns the settings without secrets, and without arguments that look so.
func (s Settings) Hidden() Settings {
	s.Args = redact.Args(s.Args)
	return tagged.Hidden(s)
}

// Shown returns the settings without secrets by their keys, as a Change would set them: what
// is hidden is null in tables of texts, and elsewhere marked.
func (s Settings) Shown() map[string]any {
	shown := tagged.Object(s.Hidden())
	for key, value := range shown {
		if table, ok := value.(map[string]string); ok {
			texts := map[string]*string{}
			for name, text := range table {
				if texts[name] = &text; text == tagged.HiddenValue {
					texts[name] = nil
				}
			}
			shown[key] = texts
		}
	}
	return shown
}
