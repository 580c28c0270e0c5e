// Package taggedtest goes through all fields of a struct of settings, for tests that their tags
// have their effect.
package taggedtest

import (
	"reflect"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/tagged"
)

// Fields are the fields of settings that have a key, in structs in them, too.
func Fields(of reflect.Type) []reflect.StructField { return fields(of, nil) }

func fields(of reflect.Type, outer []int) (all []reflect.StructField) {
	for field := range of.Fields() {
		field.Index = append(slices.Clone(outer), field.Index...)
		switch {
		case tagged.Key(field) == "-":
		case field.Type.Kind() == reflect.Struct:
			all = append(all, fields(field.Type, field.Index)...)
		default:
			all = append(all, field)
		}
	}
	return all
}

// Change gives a field another value: text, if it has texts.
func Change(field reflect.Value, text string) {
	switch v := field.Addr().Interface().(type) {
	case *map[string]string:
		*v = map[string]string{"x": text}
	case *duration.Duration:
		*v = duration.Duration(time.Hour)
	case **bool:
		*v = new(bool)
	default:
		changePlain(field, text)
	}
}

func changePlain(field reflect.Value, text string) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Slice:
		field.Set(reflect.ValueOf([]string{text}).Convert(field.Type()))
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
		field.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(field.Type().Elem()))
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Int, reflect.Int64:
		field.SetInt(7)
	case reflect.Uint64:
		field.SetUint(7)
	case reflect.Float64:
		field.SetFloat(7)
	}
}
