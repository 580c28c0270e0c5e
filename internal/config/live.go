package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// isLive tells fields that take effect when the file changes.
func isLive(field reflect.StructField) bool { return field.Tag.Get("live") != "" }

// Entry is what a configuration can differ in: a setting, or a whole table.
type Entry struct {
	Key   string
	Live  bool
	Value reflect.Value
}

// Entries is all of them, in the order they are written down.
func Entries(c *Config) []Entry { return walkEntries(reflect.ValueOf(c).Elem(), "") }

func walkEntries(v reflect.Value, prefix string) (found []Entry) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		if field.Type.Kind() == reflect.Struct {
			found = append(found, walkEntries(v.Field(i), prefix+name+".")...)
			continue
		}
		found = append(found, Entry{prefix + name, isLive(field), v.Field(i)})
	}
	return found
}

// pending is a setting that is another in the file than it was at the start, and
// takes effect at the next.
type pending struct {
	key  string
	want string // as it may be shown; "" of a table
}

// WithLive is what holds when a configuration is read after l, which it began with.
func (l *Loaded) WithLive(fresh *Loaded) *Loaded {
	both := &Loaded{Config: l.Config, File: fresh.File, Origins: maps.Clone(l.Origins), sources: l.sources}
	shown := map[string]string{}
	for _, s := range settingsOf(&fresh.Config) {
		if line, err := s.show("value"); err == nil {
			shown[s.key] = strings.TrimPrefix(line, "value = ")
		}
	}
	wanted := Entries(&fresh.Config)
	for i, k := range Entries(&both.Config) {
		if !k.Live {
			if !sameValue(k.Value, wanted[i].Value) {
				both.waiting = append(both.waiting, pending{k.Key, shown[k.Key]})
			}
			continue
		}
		k.Value.Set(wanted[i].Value)
		if origin := fresh.Origins[k.Key]; origin != "" {
			both.Origins[k.Key] = origin
		} else {
			delete(both.Origins, k.Key)
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

// RestartNeeded are the settings whose value in the file waits for a restart.
func (l *Loaded) RestartNeeded() []string {
	names := make([]string, len(l.waiting))
	for i, p := range l.waiting {
		names[i] = p.key
	}
	return names
}

// awaits says what a setting will be after a restart, when that is another value.
func (l *Loaded) awaits(key string) string {
	at := slices.IndexFunc(l.waiting, func(p pending) bool { return p.key == key })
	if at < 0 {
		return ""
	}
	return "; RESTART NEEDED for " + l.waiting[at].want
}

// WatchedFiles are the files that make up the configuration, by their full paths.
func (l *Loaded) WatchedFiles() map[string]bool {
	paths := make([]string, 0, 1+len(l.MCP.Import))
	if l.File != "" {
		paths = append(paths, l.File)
	}
	for _, path := range l.MCP.Import {
		paths = append(paths, l.beside(path))
	}
	files := map[string]bool{}
	for _, path := range paths {
		if full, err := filepath.Abs(path); err == nil {
			files[full] = true
		}
	}
	return files
}
