// Package tagged goes through structs of settings by the tags of their fields, so that a
// field says once what is done with it.
package tagged

import (
	"maps"
	"reflect"
	"slices"
)

// Texts replaces the texts of all fields that have a tag: strings, the items of lists, and
// the values of tables. settings is a pointer to a struct; structs in it are gone through,
// too, also in its tables. change gets the tag's value as kind. Lists and tables are
// replaced by copies, so that other structs that share them stay as they are.
func Texts(settings any, tag string, change func(kind, text string) (string, error)) error {
	return walker{tag, change}.fields(reflect.ValueOf(settings).Elem())
}

type walker struct {
	tag    string
	change func(kind, text string) (string, error)
}

func (w walker) fields(s reflect.Value) error {
	for i := range s.NumField() {
		field := s.Type().Field(i)
		kind, tagged := field.Tag.Lookup(w.tag)
		if !field.IsExported() || !tagged && !hasStructs(field.Type) {
			continue
		}
		if err := w.value(s.Field(i), kind, tagged); err != nil {
			return err
		}
	}
	return nil
}

// hasStructs reports whether values of a type are structs or contain any.
func hasStructs(t reflect.Type) bool {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

func (w walker) value(v reflect.Value, kind string, tagged bool) error {
	switch v.Kind() {
	case reflect.String:
		if !tagged {
			return nil
		}
		text, err := w.change(kind, v.String())
		v.SetString(text)
		return err
	case reflect.Struct:
		return w.fields(v)
	case reflect.Pointer:
		return w.pointer(v, kind, tagged)
	case reflect.Slice:
		return w.list(v, kind, tagged)
	case reflect.Map:
		return w.table(v, kind, tagged)
	}
	return nil
}

func (w walker) pointer(v reflect.Value, kind string, tagged bool) error {
	if v.IsNil() {
		return nil
	}
	fresh := reflect.New(v.Type().Elem())
	fresh.Elem().Set(v.Elem())
	v.Set(fresh)
	return w.value(fresh.Elem(), kind, tagged)
}

func (w walker) list(v reflect.Value, kind string, tagged bool) error {
	if v.Len() == 0 {
		return nil
	}
	fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(fresh, v)
	v.Set(fresh)
	for i := range fresh.Len() {
		if err := w.value(fresh.Index(i), kind, tagged); err != nil {
			return err
		}
	}
	return nil
}

// table goes through the entries in the order of their names.
func (w walker) table(v reflect.Value, kind string, tagged bool) error {
	if v.Len() == 0 {
		return nil
	}
	fresh, entries := reflect.MakeMap(v.Type()), map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		entries[key.String()] = key
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry := reflect.New(v.Type().Elem()).Elem()
		entry.Set(v.MapIndex(entries[name]))
		if err := w.value(entry, kind, tagged); err != nil {
			return err
		}
		fresh.SetMapIndex(entries[name], entry)
	}
	v.Set(fresh)
	return nil
}

// Same reports whether two structs of one type have the same values in all fields but those
// with a tag. A missing list or table equals an empty one.
func Same(a, b any, except string) bool {
	return same(reflect.ValueOf(a), reflect.ValueOf(b), except)
}

func same(a, b reflect.Value, except string) bool {
	for i := range a.NumField() {
		field, one, other := a.Type().Field(i), a.Field(i), b.Field(i)
		if _, skipped := field.Tag.Lookup(except); skipped || !field.IsExported() {
			continue
		}
		switch kind := field.Type.Kind(); {
		case kind == reflect.Struct:
			if !same(one, other, except) {
				return false
			}
		case (kind == reflect.Slice || kind == reflect.Map) && one.Len() == 0 && other.Len() == 0:
		case !reflect.DeepEqual(one.Interface(), other.Interface()):
			return false
		}
	}
	return true
}
