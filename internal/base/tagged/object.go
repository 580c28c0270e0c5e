package tagged

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// Key is the key of a field in files and in JSON; "-" if it has none.
func Key(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
	return name
}

// Field finds a field of a struct type by its key.
func Field(of reflect.Type, key string) (found reflect.StructField, ok bool) {
	for field := range of.Fields() {
		if key != "-" && Key(field) == key {
			return field, true
		}
	}
	return found, false
}

// Object returns the fields of a struct that have a value, by their keys: it is encoded as JSON
// as a file has them. Structs in it, also in its tables, are objects, too.
func Object(settings any) map[string]any {
	object := map[string]any{}
	for field, value := range reflect.ValueOf(settings).Fields() {
		if key := Key(field); key != "-" && !isEmpty(value) {
			object[key] = plain(value)
		}
	}
	return object
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func plain(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Struct:
		return Object(v.Interface())
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct:
		table := map[string]any{}
		for entry := v.MapRange(); entry.Next(); {
			table[entry.Key().String()] = Object(entry.Value().Interface())
		}
		return table
	}
	return v.Interface()
}

// Set gives the field with a key the value that JSON has for it; null gives it its zero value.
// settings is a pointer to a struct. Keys that the struct does not have are errors, also in
// structs in it.
func Set(settings any, key string, value json.RawMessage) error {
	s := reflect.ValueOf(settings).Elem()
	field, ok := Field(s.Type(), key)
	if !ok {
		return fmt.Errorf("unknown key %q", key)
	}
	fresh := reflect.New(field.Type).Elem()
	if !rawjson.IsNull(value) {
		if err := decode(fresh, value); err != nil {
			return err
		}
	}
	s.FieldByIndex(field.Index).Set(fresh)
	return nil
}

func decode(v reflect.Value, value json.RawMessage) error {
	_, itself := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case itself:
	case v.Kind() == reflect.Struct:
		return members(value, func(key string, member json.RawMessage) error { return Set(v.Addr().Interface(), key, member) })
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.MakeMap(v.Type()))
		return members(value, func(key string, member json.RawMessage) error {
			entry := reflect.New(v.Type().Elem()).Elem()
			err := decode(entry, member)
			v.SetMapIndex(reflect.ValueOf(key), entry)
			return err
		})
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String && bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")):
		var list []string // without the type's own way to read a single text
		err := json.Unmarshal(value, &list)
		if err == nil {
			v.Set(reflect.ValueOf(list).Convert(v.Type()))
		}
		return err
	}
	return json.Unmarshal(value, v.Addr().Interface())
}

// members goes through an object in the order of its keys.
func members(object json.RawMessage, do func(key string, member json.RawMessage) error) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := do(key, all[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}
