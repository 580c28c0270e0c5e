package server

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// ConfigUpdated is published when a setting changed while the server runs. Its
// value is what `config show` shows of it, without secrets; nil when it is gone. Of
// tables other than those of upstreams it is the names in them.
type ConfigUpdated struct {
	Key     string `json:"key"`
	Value   any    `json:"value"`
	Restart bool   `json:"restart_needed,omitempty"` // it takes effect at the next start
}

// EventType is "config.update".
func (ConfigUpdated) EventType() string { return "config.update" }

// EventKey is the setting.
func (c ConfigUpdated) EventKey() string { return c.Key }

// tellChanges publishes what of the configuration is not as it was.
func (h *House) tellChanges(config *Loaded) {
	before := h.told
	h.told = config
	if before == nil { // the start is no change
		return
	}
	h.tellUpstreams(before.shownUpstreams(), config.shownUpstreams())
	shown := map[string]any{}
	for _, s := range settingsOf(&config.Config) {
		shown[s.key] = s.shown()
	}
	started, was := knobsOf(&h.config.Config), knobsOf(&before.Config)
	for i, k := range knobsOf(&config.Config) {
		if k.key == "upstreams" || sameValue(k.value, was[i].value) {
			continue
		}
		value, ok := shown[k.key]
		if !ok {
			value = namesIn(k.value)
		}
		h.bus.Publish(ConfigUpdated{Key: k.key, Value: value, Restart: !k.live && !sameValue(k.value, started[i].value)})
	}
}

// namesIn is what a table may show of itself.
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

func (h *House) tellUpstreams(before, now map[string]map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, still := now[name]; !still {
			h.bus.Publish(ConfigUpdated{Key: "upstreams." + name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(before[name], now[name]) {
			h.bus.Publish(ConfigUpdated{Key: "upstreams." + name, Value: now[name]})
		}
	}
}

// shownUpstreams is the upstreams as anybody may see them.
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
