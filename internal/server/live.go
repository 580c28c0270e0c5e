package server

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// isLive tells fields that take effect when the file changes.
func isLive(field reflect.StructField) bool { return field.Tag.Get("live") != "" }

// knob is what a configuration can differ in: a setting, or a whole table.
type knob struct {
	key   string
	live  bool
	value reflect.Value
}

// knobsOf is all of them, in the order they are written down.
func knobsOf(c *Config) []knob { return walkKnobs(reflect.ValueOf(c).Elem(), "") }

func walkKnobs(v reflect.Value, prefix string) (found []knob) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if field.Type.Kind() == reflect.Struct {
			found = append(found, walkKnobs(v.Field(i), prefix+name+".")...)
			continue
		}
		found = append(found, knob{prefix + name, isLive(field), v.Field(i)})
	}
	return found
}

// pending is a setting that is another in the file than it was at the start, and
// takes effect at the next.
type pending struct {
	key  string
	want string // as it may be shown; "" of a table
}

// now is the configuration that holds: that of the start with what has taken effect
// since. Parts that heed changes ask here, all others h.config.
func (h *House) now() *Loaded {
	if current := h.current.Load(); current != nil {
		return current
	}
	return h.config
}

// with is what holds when a configuration is read after l, which it began with.
func (l *Loaded) with(fresh *Loaded) *Loaded {
	both := &Loaded{Config: l.Config, File: fresh.File, Origins: maps.Clone(l.Origins), sources: l.sources}
	shown := map[string]string{}
	for _, s := range settingsOf(&fresh.Config) {
		if line, err := s.show("value"); err == nil {
			shown[s.key] = strings.TrimPrefix(line, "value = ")
		}
	}
	wanted := knobsOf(&fresh.Config)
	for i, k := range knobsOf(&both.Config) {
		if !k.live {
			if !sameValue(k.value, wanted[i].value) {
				both.waiting = append(both.waiting, pending{k.key, shown[k.key]})
			}
			continue
		}
		k.value.Set(wanted[i].value)
		if origin := fresh.Origins[k.key]; origin != "" {
			both.Origins[k.key] = origin
		} else {
			delete(both.Origins, k.key)
		}
	}
	return both
}

// sameValue tells whether two values mean the same: a list or table that is not
// there is an empty one.
func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// restartNeeded are the settings whose value in the file waits for a restart.
func (l *Loaded) restartNeeded() []string {
	names := make([]string, len(l.waiting))
	for i, p := range l.waiting {
		names[i] = p.key
	}
	return names
}

func (h *House) restartNeeded() []string { return h.now().restartNeeded() }

// awaits says what a setting will be after a restart, when that is another value.
func (l *Loaded) awaits(key string) string {
	at := slices.IndexFunc(l.waiting, func(p pending) bool { return p.key == key })
	if at < 0 {
		return ""
	}
	return "; RESTART NEEDED for " + l.waiting[at].want
}

// tune brings the parts that are set by hand in line with the configuration that
// holds now; others ask for it themselves.
func (h *House) tune(before *Loaded) {
	config := &h.now().Config
	h.telemetry.SetLevel(logLevel(config.Log.Level))
	if config.GCPercent != before.GCPercent {
		config.TuneCollector(h.options.Env)
	}
	h.exposeMusic(config)
	h.catalog.Pin(config.MCP.Pinned)
	h.catalog.ReloadLimits()
	if h.menu != nil && (config.MCP.Mode != before.MCP.Mode || config.MCP.CodeThreshold != before.MCP.CodeThreshold) {
		h.menu.Set(config.MCP.Mode, config.MCP.CodeThreshold)
	}
}
