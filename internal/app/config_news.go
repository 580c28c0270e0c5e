package app

import (
	"maps"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// ConfigUpdated is published when a setting changed while the server runs. Its
// value is what `config show` shows of it, without secrets; nil when it is gone.
type ConfigUpdated struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// EventType is "config.update".
func (ConfigUpdated) EventType() string { return "config.update" }

// EventKey is the setting.
func (c ConfigUpdated) EventKey() string { return c.Key }

// tellChanges publishes what of the configuration is not as it was.
func (h *House) tellChanges(config *Loaded) {
	now := config.shownUpstreams()
	before := h.shown
	h.shown = now
	if before == nil { // the start is no change
		return
	}
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
