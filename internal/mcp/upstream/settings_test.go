package upstream

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
)

// TestTagsOfSettings changes every setting of an upstream and checks that its tags live and
// vars say what follows: whether the connection stays, and whether ${NAME} is replaced.
func TestTagsOfSettings(t *testing.T) {
	t.Parallel()
	replaced := func(name string) (string, bool) { return "found " + name, true }
	for _, f := range allFields(reflect.TypeFor[Settings](), nil) {
		spec := Spec{Name: "a", Settings: Settings{URL: "http://a.example"}}
		other := spec
		change(reflect.ValueOf(&other.Settings).Elem().FieldByIndex(f.Index), "${A}")
		if spec.Equal(other) {
			t.Errorf("%s: a change is none", f.Name)
		}
		if _, live := f.Tag.Lookup("live"); live != spec.sameConnection(other) {
			t.Errorf("%s: the connection stays: %v, live: %v", f.Name, !live, live)
		}
		expanded, _ := other.Expand(replaced)
		before, after := textOf(other, f), textOf(expanded, f)
		if _, vars := f.Tag.Lookup("vars"); vars != strings.Contains(after, "found A") || !vars && before != after {
			t.Errorf("%s: %s became %s, vars: %v", f.Name, before, after, vars)
		}
	}
}

// TestAnOptionHasTwoPlaces counts the files that name an option: the settings, and the place
// where it takes effect.
func TestAnOptionHasTwoPlaces(t *testing.T) {
	t.Parallel()
	places := map[string][]string{"DiskMB": nil, "CPUTime": nil, "CPUs": nil, "Ranks": nil}
	for _, top := range []string{"../../../internal", "../../../cmd"} {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for option, in := range places {
				if bytes.Contains(text, []byte(option)) {
					places[option] = append(in, path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for option, in := range places {
		if len(in) != 2 {
			t.Errorf("%s is named in %q", option, in)
		}
	}
}

// allFields are the fields of settings and of the structs in them that an owner can set.
func allFields(of reflect.Type, outer []int) (all []reflect.StructField) {
	for field := range of.Fields() {
		field.Index = append(append([]int{}, outer...), field.Index...)
		switch {
		case strings.HasPrefix(field.Tag.Get("toml"), "-"):
		case field.Type.Kind() == reflect.Struct:
			all = append(all, allFields(field.Type, field.Index)...)
		default:
			all = append(all, field)
		}
	}
	return all
}

func textOf(s Spec, f reflect.StructField) string {
	var texts []string
	switch v := reflect.ValueOf(s.Settings).FieldByIndex(f.Index).Interface().(type) {
	case string:
		texts = []string{v}
	case []string:
		texts = v
	case map[string]string:
		for _, text := range v {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// change gives a field another value: text, if it has texts.
func change(field reflect.Value, text string) {
	switch v := field.Addr().Interface().(type) {
	case *map[string]string:
		*v = map[string]string{"x": text}
	case *duration.Duration:
		*v = duration.Duration(time.Hour)
	case **bool:
		*v = new(bool)
	default:
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
}
