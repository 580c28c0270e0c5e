package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// isLive reports whether a field takes effect when the file changes.
func isLive(field reflect.StructField) bool { return field.Tag.Get("live") != "" }

// Entry is one setting or one whole table of a configuration.
type Entry struct {
	Key   string
	Live  bool
	Value reflect.Value
}

// Entries returns all entries, in the order of the fields.
func Entries(c *Config) []Entry { return walkEntries(reflect.ValueOf(c).Elem(), "") }

func walkEntries(v reflect.Value, prefix string) (found []Entry) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := sectionOf(field)
		if field.Type.Kind() == reflect.Struct {
			found = append(found, walkEntries(v.Field(i), prefix+name+".")...)
			continue
		}
		found = append(found, Entry{prefix + name, isLive(field), v.Field(i)})
	}
	return found
}

// pending is a setting that was changed in the file since the start. It takes effect at
// the next start.
type pending struct {
	key  string
	want string // without secrets; "" for a table
}

// WithLive returns the effective configuration after another was read: its live settings,
// and the other settings of l, which the server started with.
func (l *Loaded) WithLive(fresh *Loaded) *Loaded {
	both := &Loaded{Config: l.Config, File: fresh.File, Origins: maps.Clone(l.Origins), Warnings: fresh.Warnings, sources: l.sources, trusting: fresh.trusting}
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

// sameValue reports whether two values are equal. A missing list or table equals an
// empty one.
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

// WatchedFiles returns the absolute paths of the files of the configuration.
func (l *Loaded) WatchedFiles() map[string]bool {
	paths := make([]string, 0, 1+len(l.MCP.Import))
	if l.File != "" {
		paths = append(paths, l.File)
	}
	for _, path := range l.MCP.Import {
		paths = append(paths, l.beside(path))
	}
	if store := TrustStore(l.sources.Env); l.trusting.found && store.Path != "" {
		if os.MkdirAll(filepath.Dir(store.Path), 0o700) == nil { // a folder must exist to be watched
			paths = append(paths, store.Path)
		}
	}
	files := map[string]bool{}
	for _, path := range paths {
		if full, err := filepath.Abs(path); err == nil {
			files[full] = true
		}
	}
	return files
}
