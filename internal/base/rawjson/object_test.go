package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/rawjson"
)

func TestEditsKeepTheRest(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{ "z": 9007199254740993, "a" : {"b":1.0}, "z2":[ ] }`)
	for _, c := range []struct{ what, got, want string }{
		{"set in place", string(rawjson.Set(object, "a", json.RawMessage(`true`))), `{ "z": 9007199254740993, "a" : true, "z2":[ ] }`},
		{"set at the end", string(rawjson.Set(object, "n", json.RawMessage(`null`))), `{ "z": 9007199254740993, "a" : {"b":1.0}, "z2":[ ] ,"n":null}`},
		{"set in empty text", string(rawjson.Set(nil, "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set in an empty object", string(rawjson.Set(json.RawMessage(`{}`), "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set in an array", string(rawjson.Set(json.RawMessage(`[]`), "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set of a repeated key", string(rawjson.Set(json.RawMessage(`{"n":1,"m":2,"n":3}`), "n", json.RawMessage(`4`))), `{"m":2,"n":4}`},
		{"delete", string(rawjson.Delete(object, "a")), `{"z": 9007199254740993,"z2":[ ]}`},
		{"delete a missing key", string(rawjson.Delete(object, "b")), string(object)},
		{"delete the only key", string(rawjson.Delete(json.RawMessage(`{"a":1}`), "a")), `{}`},
	} {
		if c.got != c.want {
			t.Errorf("%s = %s\nwant %s", c.what, c.got, c.want)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"s":"a\"b","n":1,"b":true,"n":2,"\u0073t":"x"}`)
	if s, ok := rawjson.GetText(object, "s"); !ok || s != `a"b` {
		t.Errorf("text = %q, %v", s, ok)
	}
	if n, _ := rawjson.Get(object, "n"); string(n) != "2" {
		t.Errorf("repeated key gave %s, want the last", n)
	}
	if _, ok := rawjson.GetText(object, "n"); ok {
		t.Error("a number was read as text")
	}
	if !rawjson.GetBool(object, "b") || rawjson.GetBool(object, "n") {
		t.Error("booleans are read wrong")
	}
	if s, _ := rawjson.GetText(object, "st"); s != "x" {
		t.Error("an escaped key was not found")
	}
	items, ok := rawjson.Items(json.RawMessage(` [1, {"a":[]},"x"]`))
	if !ok || len(items) != 3 || string(items[1]) != `{"a":[]}` {
		t.Errorf("items = %s, %v", items, ok)
	}
	if _, ok := rawjson.Number(json.RawMessage(`1e400`)); ok {
		t.Error("1e400 was read as a float64")
	}
}

// TestLacks checks that a key that Lacks reports as missing does not exist in any
// spelling.
func TestLacks(t *testing.T) {
	t.Parallel()
	for object, lacks := range map[string]bool{
		`{"a":1}`:        false,
		`{"b":{"a":1}}`:  false, // Lacks does not consider the position
		`{"\u0061":1}`:   false,
		`{"b":"\u0061"}`: false,
		`{"b":1}`:        true,
		``:               true,
	} {
		if got := rawjson.Lacks([]byte(object), "a"); got != lacks {
			t.Errorf("Lacks(%s) = %v", object, got)
		}
		if _, there := rawjson.Get([]byte(object), "a"); there && lacks {
			t.Errorf("Lacks reported that %s lacks a key that it has", object)
		}
	}
	for object, lacks := range map[string]bool{`{"a/b":1}`: false, `{"a\/b":1}`: false, `{"a":"/"}`: true} {
		if got := rawjson.Lacks([]byte(object), "a/b"); got != lacks {
			t.Errorf("Lacks(%s) = %v", object, got)
		}
	}
}

// FuzzEdit compares every edit with encoding/json.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"io.modelcontextprotocol/x":1}}`), "a")
	f.Add([]byte(`{"a":1,"a":2}`), "a")
	f.Add([]byte(`{"\u0061":[1,2,{}]}`), "b")
	f.Add([]byte(` {} `), "")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		var before map[string]json.RawMessage
		if rawjson.Valid(data) != nil || json.Unmarshal(data, &before) != nil || before == nil {
			return // only objects can be edited
		}
		key = strings.ToValidUTF8(key, "?")
		raw, ok := rawjson.Get(data, key)
		if want, has := before[key]; has != ok || string(want) != string(raw) {
			t.Fatalf("Get(%s, %q) = %s, %v", data, key, raw, ok)
		}
		before[key] = json.RawMessage(`"new"`)
		same(t, rawjson.SetText(data, key, "new"), before)
		delete(before, key)
		same(t, rawjson.Delete(data, key), before)
	})
}

func same(t *testing.T, got json.RawMessage, want map[string]json.RawMessage) {
	t.Helper()
	var have map[string]json.RawMessage
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatalf("edit returned invalid JSON %q: %v", got, err)
	}
	if len(have) != len(want) {
		t.Fatalf("edit gave %s, want %v", got, want)
	}
	for k, v := range want {
		if string(have[k]) != string(v) {
			t.Fatalf("edit changed %q to %s, want %s", k, have[k], v)
		}
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		``:                 `{"b":1}`,
		`null`:             `{"b":1}`,
		`{}`:               `{"b":1}`,
		" {\n} ":           ` {` + "\n" + `"b":1}`,
		`{"a":{"b":[{}]}}`: `{"a":{"b":[{}]},"b":1}`,
		"{\"a\":\"}\"}\n":  `{"a":"}","b":1}`,
	} {
		if got := rawjson.Extend(json.RawMessage(object), []byte(`"b":1`)); string(got) != want {
			t.Errorf("%q: %q, want %q", object, got, want)
		}
		if got := rawjson.Extend(json.RawMessage(object), nil); string(got) != object {
			t.Errorf("%q with nothing: %q", object, got)
		}
	}
}

func TestAppendMembers(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"a":1,"_meta":{"b":2}, "c" : [3] }`: `{"a":1,"c" : [3],"d":4}`,
		`{"_meta":{}}`:                        `{"d":4}`,
		` {"\u005fmeta":1,"a":"}"} `:          `{"a":"}","d":4}`,
		`{}`:                                  `{"d":4}`,
		``:                                    `{"d":4}`,
		`[1]`:                                 `{"d":4}`,
	} {
		out := rawjson.AppendMembers(nil, json.RawMessage(object), func(key []byte) bool { return string(key) == "_meta" })
		if got := string(append(rawjson.AppendKey(out, "d"), "4}"...)); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`1`: 0, `"[[\"["`: 0, `{}`: 1, `{"a":[1,{"b":"]"}],"c":{}}`: 3} {
		if got := rawjson.Depth(json.RawMessage(text)); got != want {
			t.Errorf("Depth(%s) = %d, want %d", text, got, want)
		}
	}
}
