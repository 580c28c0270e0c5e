package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/duration"
)

// setting is one scalar or list of strings of the configuration, which a variable or a
// flag can set as text.
type setting struct {
	key     string // "log.level"
	help    string
	secret  string   // what Show hides: "", "url" or "all"
	alias   string   // another variable that sets it; its own takes precedence
	live    bool     // it takes effect when the file changes
	trust   string   // whether a file must be trusted to set it; see trusted.go
	choices []string // that a text may have, if it is limited
	field   reflect.Value
}

// variable returns the name of the environment variable that sets it.
func (s setting) variable() string { return variableOf(s.key) }

func variableOf(key string) string {
	return "LUANETTE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// set parses text by the field's type.
func (s setting) set(text string) error {
	switch target := s.field.Addr().Interface().(type) {
	case *string:
		*target = text
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		*target = v
	case *int:
		v, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*target = v
	case *float64:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*target = v
	case *Duration:
		return target.UnmarshalText([]byte(text))
	case *[]string:
		*target = splitList(text)
	default:
		return fmt.Errorf("cannot be set as text")
	}
	return nil
}

// Duration is a time.Duration written as people write it: "30s", "5m".
type Duration = duration.Duration

func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// settingsOf returns the settings in the order of the fields, but those outside of
// sections first, as a file must have them.
func settingsOf(c *Config) []setting {
	all := walkSettings(reflect.ValueOf(c).Elem(), "")
	inSection := func(s setting) bool { return strings.Contains(s.key, ".") }
	outside := slices.DeleteFunc(slices.Clone(all), inSection)
	return append(outside, slices.DeleteFunc(all, func(s setting) bool { return !inSection(s) })...)
}

// walkSettings returns the settings in a section.
func walkSettings(v reflect.Value, prefix string) []setting {
	var found []setting
	for field, value := range v.Fields() {
		name := keyOf(field)
		switch {
		case field.Type.Kind() == reflect.Struct:
			found = append(found, walkSettings(value, prefix+name+".")...)
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct: // a table of its own
		case field.Type.Kind() != reflect.Map:
			found = append(found, setting{
				key: prefix + name, help: field.Tag.Get("help"), secret: field.Tag.Get("secret"),
				alias: field.Tag.Get("alias"), live: isLive(field), trust: field.Tag.Get("trust"), choices: choicesOf(field.Tag), field: value,
			})
		}
	}
	return found
}

// keyOf is the key of a field in a file.
func keyOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
	return name
}

// keysOf lists the keys of a section or of a table's entry.
func keysOf[T any]() (keys []string) {
	for field := range reflect.TypeFor[T]().Fields() {
		keys = append(keys, keyOf(field))
	}
	return keys
}

// settingKeys lists every key outside of tables that a file may have, and every section.
func settingKeys() []string {
	keys := keysOf[Config]()
	for _, s := range settingsOf(new(Config)) {
		keys = append(keys, s.key)
	}
	return keys
}

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
		name := keyOf(field)
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
