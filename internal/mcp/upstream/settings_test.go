package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/tagged"
	"github.com/luanette/luanette/internal/base/tagged/taggedtest"
)

// TestTagsOfSettings changes every setting of an upstream and checks that its tags live and
// vars say what follows: whether the connection stays, and whether ${NAME} is replaced.
func TestTagsOfSettings(t *testing.T) {
	t.Parallel()
	replaced := func(name string) (string, bool) { return "found " + name, true }
	for _, f := range taggedtest.Fields(reflect.TypeFor[Settings]()) {
		spec := Spec{Name: "a", Settings: Settings{URL: "http://a.example"}}
		other := spec
		taggedtest.Change(reflect.ValueOf(&other.Settings).Elem().FieldByIndex(f.Index), "${A}")
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

// TestSettingsAsJSON checks for every setting that it is written as JSON and read again.
func TestSettingsAsJSON(t *testing.T) {
	t.Parallel()
	for _, f := range taggedtest.Fields(reflect.TypeFor[Settings]()) {
		var s Settings
		taggedtest.Change(reflect.ValueOf(&s).Elem().FieldByIndex(f.Index), "a")
		text, err := json.Marshal(tagged.Object(s))
		if err != nil {
			t.Fatal(err)
		}
		var change Change
		if err := json.Unmarshal(text, &change); err != nil || len(change) != 1 {
			t.Fatalf("%s is %s: %v", f.Name, text, err)
		}
		if read, _, err := change.Apply(Settings{}, nil); err != nil || !reflect.DeepEqual(read, s) {
			t.Errorf("%s: %s is read as %+v, %v", f.Name, text, read, err)
		}
		for key := range change {
			change[key] = json.RawMessage("null")
		}
		if read, _, err := change.Apply(s, nil); err != nil || !reflect.DeepEqual(read, Settings{}) {
			t.Errorf("%s: with null it is %+v, %v", f.Name, read, err)
		}
	}
}

// TestChange checks what a change keeps and refuses.
func TestChange(t *testing.T) {
	t.Parallel()
	before := Settings{URL: "https://a.example", Headers: map[string]string{"A": "1", "B": "2"}, API: api.Settings{User: "me"}}
	change := Change{"headers": json.RawMessage(`{"A":null,"C":"3"}`), "timeout_ms": json.RawMessage(`1500`), "org": json.RawMessage(`"acme"`)}
	after, filled, err := change.Apply(before, nil)
	if err != nil || !reflect.DeepEqual(after.Headers, map[string]string{"A": "1", "C": "3"}) || after.Timeout.String() != "1.5s" || after.URL != before.URL || after.Org[0] != "acme" {
		t.Errorf("after %+v, %v", after, err)
	}
	if string(filled["headers"]) != `{"A":"1","C":"3"}` || string(filled["timeout"]) != `"1500ms"` || filled["timeout_ms"] != nil {
		t.Errorf("filled %s", filled)
	}
	for key, value := range map[string]string{
		"colour": `1`, "timeout": `"soon"`, "url": `"https://a.example/?(hidden)"`, "headers": `{"Z":null}`,
		"api": `{"users":"x"}`, "expose": `"some"`, "args": `"one"`, "revert": `{"a":{"tools":"b"}}`,
	} {
		_, _, err := Change{key: json.RawMessage(value)}.Apply(before, nil)
		var problem *fault.Error
		if !errors.As(err, &problem) || string(problem.Details) != `{"field":"`+key+`"}` || fault.HintOf(err) == "" {
			t.Errorf("%s = %s: %v", key, value, err)
		}
	}
	if shown := before.Shown(); fmt.Sprint(shown["headers"].(map[string]*string)["A"]) != "<nil>" || fmt.Sprint(shown["api"]) != "map[user:me]" {
		t.Errorf("shown %v", shown)
	}
}

func TestTextChange(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"timeout": "90s", "read_only": "true", "require": "false", "cpus": "0.5", "people": "5", "bearer_env": "TOKEN", "expose": "all",
		"labels": "a,b", "accepts": "true", "args": `["a,b"]`, "org": "acme", "oauth": `{"scopes":["a"]}`, "headers": `{"A":"b"}`,
	}
	got, _, err := TextChange(texts).Apply(Settings{}, nil)
	want := Settings{
		Timeout: duration.Duration(90 * time.Second), ReadOnly: true, Require: new(bool), CPUs: 0.5, People: 5, BearerEnv: "TOKEN", Expose: Expose{ExposeAll},
		Labels: []string{"a", "b"}, Accepts: []string{"true"}, Args: []string{"a,b"}, Org: Names{"acme"}, OAuth: OAuth{Scopes: []string{"a"}}, Headers: map[string]string{"A": "b"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, key := range []string{"people", "colour"} {
		if _, _, err := TextChange(map[string]string{key: "many"}).Apply(Settings{}, nil); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
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
