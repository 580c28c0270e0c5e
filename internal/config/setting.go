package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one scalar or list of strings of the configuration, which a variable or a
// flag can set as text.
type setting struct {
	key    string // "log.level"
	was    string // its former key, or ""
	values string // values that were renamed with it, such as "former=new,…"
	help   string
	secret string // what Show hides: "", "url" or "all"
	alias  string // another variable that sets it; its own takes precedence
	live   bool   // it takes effect when the file changes
	trust  string // whether a file must be trusted to set it; see trusted.go
	field  reflect.Value
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
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s or 5m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes "1m30s".
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).String()), nil
}

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
	all := walkSettings(reflect.ValueOf(c).Elem(), "", "")
	inSection := func(s setting) bool { return strings.Contains(s.key, ".") }
	outside := slices.DeleteFunc(slices.Clone(all), inSection)
	return append(outside, slices.DeleteFunc(all, func(s setting) bool { return !inSection(s) })...)
}

// walkSettings returns the settings in a section. former is the section's former prefix,
// if it was renamed.
func walkSettings(v reflect.Value, prefix, former string) []setting {
	var found []setting
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := sectionOf(field)
		switch {
		case field.Type.Kind() == reflect.Struct:
			found = append(found, walkSettings(v.Field(i), prefix+name+".", formerSection(field, former, name))...)
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct: // a table of its own
		case field.Type.Kind() != reflect.Map:
			s := setting{
				key: prefix + name, help: field.Tag.Get("help"), secret: field.Tag.Get("secret"),
				alias: field.Tag.Get("alias"), live: isLive(field), trust: field.Tag.Get("trust"), field: v.Field(i), values: field.Tag.Get("wasvalues"),
			}
			if was := field.Tag.Get("was"); was != "" {
				s.was = prefix + was
			} else if former != "" {
				s.was = former + name
			}
			found = append(found, s)
		}
	}
	return found
}

// settingKeys lists every top-level key that a file may have, including sections.
func settingKeys() []string {
	keys := []string{"log", "telemetry", "registry", "mcp", "music", "scripts", "sessions", "approvals", "chat", "keys", "upstreams", "secrets", "policy", "accepts", "audit"}
	for _, s := range settingsOf(new(Config)) {
		keys = append(keys, s.key)
	}
	return keys
}
