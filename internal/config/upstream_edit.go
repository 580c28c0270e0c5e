package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/config/toml"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// NewUpstream is an upstream to add to the configuration file.
type NewUpstream struct {
	Name    string
	Entry   Upstream
	Replace bool // an upstream of that name may exist, and is replaced
	Propose bool // it gets the sandbox of new servers, unless it has one
}

// Check returns what is wrong with the upstream, and the configuration as it will be.
func (n NewUpstream) Check(sources Sources) (*Loaded, error) {
	if _, _, err := specOf(n.Name, n.Entry, sources.Env); err != nil {
		return nil, err
	}
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return nil, err
	}
	if place, taken := loaded.UpstreamPlaces()[n.Name]; taken && !n.Replace {
		return nil, fault.New(fault.Conflict, "there is an upstream %q already: %s", n.Name, place).
			WithHint("choose another name, or replace it with --replace")
	}
	if loaded.Upstreams == nil {
		loaded.Upstreams = map[string]Upstream{}
	}
	if n.Propose {
		n.Entry = loaded.Proposed(n.Name, n.Entry, sources.Env)
	}
	loaded.Upstreams[n.Name] = n.Entry
	return loaded, loaded.check()
}

// LoadOrNew is Load for a file that is created if there is none.
func LoadOrNew(sources Sources) (*Loaded, error) {
	file, err := EditedFile(sources)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return loadFrom(file, sources)
	}
	loaded, err := loadFrom("", sources)
	if err == nil {
		loaded.File = file
	}
	return loaded, err
}

// AddUpstream adds an upstream to the configuration file and returns the file's path. It
// creates the file if there is none. The rest of the file does not change, including
// comments.
func AddUpstream(ctx context.Context, sources Sources, added NewUpstream) (file string, err error) {
	loaded, err := added.Check(sources)
	if err != nil {
		return "", err
	}
	file = loaded.File
	err = edit(file, func(text string) (string, error) {
		if toml.Lines([]byte(text), "upstreams")[added.Name] > 0 { // Check allows that only to replace it
			if text, err = cutTable(text, added.Name); err != nil {
				return "", err
			}
		}
		changed, err := toml.Append([]byte(text), []string{"upstreams", added.Name}, map[string]any{"upstreams": map[string]any{added.Name: loaded.Upstreams[added.Name]}})
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "write upstream")
		}
		return string(changed), nil
	})
	if err != nil {
		return "", err
	}
	return file, TrustUpstreams(ctx, sources, added.Name)
}

// RemoveUpstream removes an upstream's table from the configuration file and returns the
// file's path.
func RemoveUpstream(sources Sources, name string) (file string, err error) {
	loaded, err := Load(sources)
	if err != nil {
		return "", err
	}
	if _, exists := loaded.Upstreams[name]; !exists {
		where := "there is no configuration file"
		if loaded.File != "" {
			where = "it is not in " + loaded.File
		}
		return "", fault.New(fault.NotFound, "no upstream %q: %s", name, where).
			WithHint("`luanette upstream list` shows them all; imported ones are removed from their own file, those added to a running server with --server")
	}
	return loaded.File, edit(loaded.File, func(text string) (string, error) {
		return cutTable(text, name)
	})
}

// cutTable removes an upstream's table from TOML text.
func cutTable(text, name string) (string, error) {
	cut, err := toml.CutTable([]byte(text), "upstreams", name)
	if errors.Is(err, toml.ErrNoHeader) {
		return "", fault.New(fault.Config, "the table [upstreams.%s] has no header of its own", name).
			WithHint("remove it from the file by hand")
	}
	return string(cut), err
}

// edit replaces a file's text in one step, and only with text that still loads.
func edit(path string, change func(text string) (string, error)) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Config, err, "read configuration")
	}
	changed, err := change(string(text))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(changed), 0o600); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	if _, err := Load(Sources{File: fresh}); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return fault.Wrap(fault.Config, err, "write configuration")
	}
	return nil
}

// ChangeUpstream changes settings of an upstream in the configuration file and returns the
// file's path. The rest of the file does not change, including comments. If a value is not
// valid, the error's details name its key as field.
func ChangeUpstream(ctx context.Context, sources Sources, name string, change upstream.Change) (file string, err error) {
	loaded, err := loadEditable(sources, name)
	if err != nil {
		return "", err
	}
	_, filled, err := change.Apply(loaded.Upstreams[name], func(_ string, u Upstream) error { return validate(name, u, sources.Env) })
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
func NewEntry(name string, change upstream.Change, env Environment) (Upstream, error) {
	entry, _, err := change.Apply(Upstream{}, nil)
	if err != nil {
		return entry, err
	}
	if err := validate(name, entry, env); err != nil {
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

// validate says whether the upstream can be connected to.
func validate(name string, u Upstream, env Environment) error {
	c := Config{Upstreams: map[string]Upstream{name: u}}
	if err := c.checkUpstreams(); err != nil {
		return err
	}
	_, _, err := specOf(name, u, env)
	return err
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

// Updated is the event of a setting that changed while the server runs. Its value is
// what `config show` prints, without secrets, and nil when the setting was removed.
// For a table other than those of upstreams the value is the list of its names.
type Updated struct {
	Key     string `json:"key"`
	Value   any    `json:"value"`
	Restart bool   `json:"restart_needed,omitempty"` // it takes effect at the next start
}

// EventType is "config.update".
func (Updated) EventType() string { return "config.update" }

// EventKey is the setting.
func (c Updated) EventKey() string { return c.Key }

// Changes lists what differs between the configuration that was last announced and
// the one that was read now. A setting that only takes effect at a start needs a
// restart when it differs from what the server started with.
func Changes(started, before, now *Loaded) []Updated {
	changes := changedUpstreams(before.shownUpstreams(), now.shownUpstreams())
	shown := map[string]any{}
	for _, s := range settingsOf(&now.Config) {
		shown[s.key] = s.shown()
	}
	atStart, was := Entries(&started.Config), Entries(&before.Config)
	for i, e := range Entries(&now.Config) {
		if e.Key == "upstreams" || sameValue(e.Value, was[i].Value) {
			continue
		}
		value, ok := shown[e.Key]
		if !ok {
			value = namesIn(e.Value)
		}
		changes = append(changes, Updated{Key: e.Key, Value: value, Restart: !e.Live && !sameValue(e.Value, atStart[i].Value)})
	}
	return changes
}

// namesIn returns the names of a table without its values, which may be secret.
func namesIn(table reflect.Value) any {
	if table.Kind() != reflect.Map {
		return fmt.Sprintf("%d entries", table.Len())
	}
	names := []string{}
	for _, key := range table.MapKeys() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}

func changedUpstreams(before, now map[string]map[string]any) (changes []Updated) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, still := now[name]; !still {
			changes = append(changes, Updated{Key: "upstreams." + name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(before[name], now[name]) {
			changes = append(changes, Updated{Key: "upstreams." + name, Value: now[name]})
		}
	}
	return changes
}

// shownUpstreams returns the upstreams without secrets.
func (l *Loaded) shownUpstreams() map[string]map[string]any {
	shown := map[string]map[string]any{}
	for name, u := range l.Upstreams {
		shown[name] = tagged.Object(u.Hidden())
	}
	return shown
}
