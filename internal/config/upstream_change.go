package config

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/config/toml"
)

// UpstreamChange has values for settings of an upstream, by their keys in the file. null
// removes a setting; in a table such as env, null keeps the value of a name, and names that
// are missing are removed.
type UpstreamChange map[string]json.RawMessage

// ChangeUpstream changes settings of an upstream in the configuration file and returns the
// file's path. The rest of the file does not change, including comments. If a value is not
// valid, the error's details name its key as field.
func ChangeUpstream(ctx context.Context, sources Sources, name string, change UpstreamChange) (file string, err error) {
	loaded, err := loadEditable(sources, name)
	if err != nil {
		return "", err
	}
	filled, err := change.check(name, loaded.Upstreams[name], sources.Env)
	if err != nil {
		return "", err
	}
	err = edit(loaded.File, func(text string) (string, error) {
		changed := []byte(text)
		for _, key := range slices.Sorted(maps.Keys(filled)) {
			if changed, err = setUpstreamKey(changed, name, key, filled[key]); err != nil {
				return "", noHeader(err, name)
			}
		}
		return string(changed), nil
	})
	if err != nil {
		return "", err
	}
	return loaded.File, TrustUpstreams(ctx, sources, name)
}

// NewEntry returns a new upstream with these settings, if they are valid. The error is as
// that of ChangeUpstream.
func (c UpstreamChange) NewEntry(name string, env Environment) (Upstream, error) {
	var entry Upstream
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if err := entry.setKey(key, c[key]); err != nil {
			return entry, ofField(err, key)
		}
	}
	if err := entry.validate(name, env); err != nil {
		return entry, fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err))
	}
	return entry, nil
}

// loadEditable reads the configuration if its file has the upstream, and it is trusted.
func loadEditable(sources Sources, name string) (*Loaded, error) {
	loaded, err := Load(sources)
	if err != nil {
		return nil, err
	}
	if _, there := loaded.Upstreams[name]; !there {
		return nil, fault.New(fault.Conflict, "upstream %s is not in %s", name, loaded.File).WithHint("it is imported from %s; change it there", loaded.UpstreamPlaces()[name])
	}
	if does, withheld := loaded.WithheldUpstreams()[name]; withheld {
		return nil, fault.New(fault.Conflict, "upstream %s is not trusted yet: %s", name, does).WithHint("`luanette trust` lets it start")
	}
	return loaded, nil
}

// check applies the change to an entry, one key after the other, so that an error can name
// the key. It returns the change with the values that are kept.
func (c UpstreamChange) check(name string, entry Upstream, env Environment) (UpstreamChange, error) {
	filled := UpstreamChange{}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		err := refuseMarks(c[key])
		var value json.RawMessage
		if err == nil {
			value, err = entry.withKept(key, c[key])
		}
		if err == nil {
			err = entry.setKey(key, value)
		}
		if err == nil {
			err = entry.validate(name, env)
		}
		if err != nil {
			return nil, ofField(err, key)
		}
		filled[key] = value
	}
	return filled, nil
}

// ofField says which field a value is wrong of.
func ofField(err error, key string) error {
	return fault.Wrap(fault.InvalidParams, err, "").WithHint("%s", fault.HintOf(err)).WithDetails(map[string]string{"field": key})
}

// validate says whether the upstream can be connected to.
func (u Upstream) validate(name string, env Environment) error {
	c := Config{Upstreams: map[string]Upstream{name: u}}
	if err := c.checkUpstreams(); err != nil {
		return err
	}
	_, _, err := u.spec(name, env)
	return err
}

// field is the setting with a key of the file.
func (u *Upstream) field(key string) (reflect.Value, error) {
	at := slices.Index(upstreamKeys(), key)
	if at < 0 {
		return reflect.Value{}, fault.New(fault.InvalidParams, "unknown setting %q", key).WithHint("docs/configuration.md lists those of an upstream")
	}
	return reflect.ValueOf(u).Elem().Field(at), nil
}

// setKey sets the setting with a key of the file; null removes it.
func (u *Upstream) setKey(key string, value json.RawMessage) error {
	field, err := u.field(key)
	if err != nil {
		return err
	}
	field.SetZero()
	if rawjson.IsNull(value) {
		return nil
	}
	object, err := json.Marshal(map[string]json.RawMessage{key: value})
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "%s", key)
	}
	into := struct {
		Entry *Upstream `toml:"entry"`
	}{u}
	if err := toml.Decode(toml.AppendObject(nil, []string{"entry"}, object), &into); err != nil {
		return fault.New(fault.InvalidParams, "%s: %s is not valid", key, value).WithHint("docs/configuration.md lists every key with its type")
	}
	return nil
}

// withKept returns a value for a key in which the nulls of a table of texts are the values
// that it has.
func (u *Upstream) withKept(key string, value json.RawMessage) (json.RawMessage, error) {
	field, err := u.field(key)
	if err != nil {
		return nil, err
	}
	known, isTable := field.Interface().(map[string]string)
	given, isObject := textsIn(value)
	if !isTable || !isObject {
		return value, nil // setKey says what is wrong
	}
	filled := map[string]string{}
	for name, text := range given {
		if text != nil {
			filled[name] = *text
			continue
		}
		kept, there := known[name]
		if !there {
			return nil, fault.New(fault.InvalidParams, "there is no value to keep for %s", name).WithHint("give its value")
		}
		filled[name] = kept
	}
	if len(filled) == 0 {
		return json.RawMessage("null"), nil
	}
	return json.Marshal(filled)
}

// textsIn returns an object of texts and nulls.
func textsIn(value json.RawMessage) (texts map[string]*string, ok bool) {
	err := json.Unmarshal(value, &texts)
	return texts, err == nil && texts != nil
}

// setUpstreamKey writes one setting of an upstream. A table with a header of its own keeps
// it, with the comments in it.
func setUpstreamKey(text []byte, name, key string, value json.RawMessage) ([]byte, error) {
	table := []string{"upstreams", name}
	var entries map[string]json.RawMessage
	if !toml.HasHeader(text, append(table, key)...) || json.Unmarshal(value, &entries) != nil || entries == nil {
		return toml.SetValue(text, table, key, value)
	}
	table = append(table, key)
	for old := range toml.Lines(text, table...) {
		if _, kept := entries[old]; !kept {
			entries[old] = json.RawMessage("null")
		}
	}
	var err error
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		if text, err = toml.SetValue(text, table, entry, entries[entry]); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// Shown returns the settings as JSON values by their keys in the file, without secrets:
// in the tables of texts they are null, elsewhere marked.
func (u Upstream) Shown() (map[string]any, error) {
	text, err := toml.Marshal(u.hidden())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "show upstream")
	}
	shown := map[string]any{}
	if err := toml.Unmarshal(text, &shown); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "show upstream")
	}
	for _, value := range shown {
		if table, isTable := value.(map[string]any); isTable {
			for name, text := range table {
				if text == hiddenValue {
					table[name] = nil
				}
			}
		}
	}
	return shown, nil
}

// refuseMarks refuses a value that was copied from what is shown in place of a secret.
func refuseMarks(value json.RawMessage) error {
	for _, mark := range []string{hiddenValue, redact.Hidden, "?…"} {
		if bytes.Contains(value, []byte(mark)) {
			return fault.New(fault.InvalidParams, "%s stands for a secret that is not shown", mark).WithHint("write the whole value, or a reference such as ${env:NAME}")
		}
	}
	return nil
}
