package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/luanette/luanette/internal/config/toml"
)

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
		text, err := toml.Marshal(u.hidden())
		if err != nil {
			continue // it was read from such text
		}
		value := map[string]any{}
		if toml.Unmarshal(text, &value) == nil {
			shown[name] = value
		}
	}
	return shown
}
