package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/mcp/wire"
)

func TestEditsKeepWhatTheyDoNotTouch(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{ "z": 9007199254740993, "a" : {"b":1.0}, "z2":[ ] }`)
	for _, c := range []struct{ what, got, want string }{
		{"set in place", string(wire.Set(object, "a", json.RawMessage(`true`))), `{ "z": 9007199254740993, "a" : true, "z2":[ ] }`},
		{"set at the end", string(wire.Set(object, "n", json.RawMessage(`null`))), `{ "z": 9007199254740993, "a" : {"b":1.0}, "z2":[ ] ,"n":null}`},
		{"set in nothing", string(wire.Set(nil, "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set in empty", string(wire.Set(json.RawMessage(`{}`), "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set in an array", string(wire.Set(json.RawMessage(`[]`), "n", json.RawMessage(`1`))), `{"n":1}`},
		{"set of a repeated key", string(wire.Set(json.RawMessage(`{"n":1,"m":2,"n":3}`), "n", json.RawMessage(`4`))), `{"m":2,"n":4}`},
		{"delete", string(wire.Delete(object, "a")), `{"z": 9007199254740993,"z2":[ ]}`},
		{"delete what is not there", string(wire.Delete(object, "b")), string(object)},
		{"delete the only one", string(wire.Delete(json.RawMessage(`{"a":1}`), "a")), `{}`},
		{"strip", string(wire.StripProtocol(json.RawMessage(`{"content":[],"_meta":{"x/y":1,"io.modelcontextprotocol/serverInfo":{}}}`))), `{"content":[],"_meta":{"x/y":1}}`},
		{"strip all", string(wire.StripProtocol(json.RawMessage(`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`))), `{"content":[]}`},
		{"strip what has its slash escaped", string(wire.StripProtocol(json.RawMessage(`{"_meta":{"io.modelcontextprotocol\/serverInfo":{}}}`))), `{}`},
		{"strip nothing", string(wire.StripProtocol(json.RawMessage(`{"_meta":{}}`))), `{"_meta":{}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s = %s\nwant %s", c.what, c.got, c.want)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"s":"a\"b","n":1,"b":true,"n":2,"\u0073t":"x"}`)
	if s, ok := wire.GetText(object, "s"); !ok || s != `a"b` {
		t.Errorf("text = %q, %v", s, ok)
	}
	if n, _ := wire.Get(object, "n"); string(n) != "2" {
		t.Errorf("repeated key gave %s, want the last", n)
	}
	if _, ok := wire.GetText(object, "n"); ok {
		t.Error("a number passed for a text")
	}
	if !wire.GetBool(object, "b") || wire.GetBool(object, "n") {
		t.Error("booleans are misread")
	}
	if s, _ := wire.GetText(object, "st"); s != "x" {
		t.Error("an escaped key was not found")
	}
	items, ok := wire.Items(json.RawMessage(` [1, {"a":[]},"x"]`))
	if !ok || len(items) != 3 || string(items[1]) != `{"a":[]}` {
		t.Errorf("items = %s, %v", items, ok)
	}
	if _, ok := wire.Number(json.RawMessage(`1e400`)); ok {
		t.Error("1e400 passed for a float64")
	}
}

// What Lacks says is lacking is not there, however it is written.
func TestLacks(t *testing.T) {
	t.Parallel()
	for object, lacks := range map[string]bool{
		`{"a":1}`:        false,
		`{"b":{"a":1}}`:  false, // it does not look where
		`{"\u0061":1}`:   false,
		`{"b":"\u0061"}`: false,
		`{"b":1}`:        true,
		``:               true,
	} {
		if got := wire.Lacks([]byte(object), "a"); got != lacks {
			t.Errorf("Lacks(%s) = %v", object, got)
		}
		if _, there := wire.Get([]byte(object), "a"); there && lacks {
			t.Errorf("%s has what it is said to lack", object)
		}
	}
	for object, lacks := range map[string]bool{`{"a/b":1}`: false, `{"a\/b":1}`: false, `{"a":"/"}`: true} {
		if got := wire.Lacks([]byte(object), "a/b"); got != lacks {
			t.Errorf("Lacks(%s) = %v", object, got)
		}
	}
}

func TestCarrierHoldsTraceContext(t *testing.T) {
	t.Parallel()
	c := wire.Carrier{Meta: json.RawMessage(`{"progressToken":1}`)}
	c.Set(wire.MetaTraceParent, "00-a-b-01")
	if string(c.Meta) != `{"progressToken":1,"traceparent":"00-a-b-01"}` || c.Get(wire.MetaTraceParent) != "00-a-b-01" {
		t.Errorf("carrier = %s", c.Meta)
	}
	if keys := c.Keys(); !reflect.DeepEqual(keys, []string{"progressToken", "traceparent"}) {
		t.Errorf("keys = %v", keys)
	}
}

// FuzzEdit holds every edit against encoding/json's idea of the same object.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"io.modelcontextprotocol/x":1}}`), "a")
	f.Add([]byte(`{"a":1,"a":2}`), "a")
	f.Add([]byte(`{"\u0061":[1,2,{}]}`), "b")
	f.Add([]byte(` {} `), "")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		var before map[string]json.RawMessage
		if wire.Valid(data) != nil || json.Unmarshal(data, &before) != nil || before == nil {
			t.Skip("no object")
		}
		key = strings.ToValidUTF8(key, "?")
		raw, ok := wire.Get(data, key)
		if want, has := before[key]; has != ok || string(want) != string(raw) {
			t.Fatalf("Get(%s, %q) = %s, %v", data, key, raw, ok)
		}
		before[key] = json.RawMessage(`"new"`)
		same(t, wire.SetText(data, key, "new"), before)
		delete(before, key)
		same(t, wire.Delete(data, key), before)
	})
}

func same(t *testing.T, got json.RawMessage, want map[string]json.RawMessage) {
	t.Helper()
	var have map[string]json.RawMessage
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatalf("edit left invalid JSON %q: %v", got, err)
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
		if got := wire.Extend(json.RawMessage(object), []byte(`"b":1`)); string(got) != want {
			t.Errorf("%q: %q, want %q", object, got, want)
		}
		if got := wire.Extend(json.RawMessage(object), nil); string(got) != object {
			t.Errorf("%q with nothing: %q", object, got)
		}
	}
}

func TestLegacied(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}}}`:  `{"content":[]}`,
		`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{},"mine": 1},"content":[ ]}`: `{"_meta":{"mine": 1},"content":[ ]}`,
		`{"content":[],"_meta":{"mine":1}}`: `{"content":[],"_meta":{"mine":1}}`,
		`{"content":[],"_meta":{}}`:         `{"content":[],"_meta":{}}`,
		`{"resultType":"complete"}`:         `{}`,
		`{"_meta":{"mine":1},"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{}}}`: `{}`,
		`{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"resultType":"complete","_meta":{"mine":1}}`: `{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"_meta":{"mine":1}}`,
	} {
		if got := string(wire.Legacied(json.RawMessage(result))); got != want {
			t.Errorf("%s became %s", result, got)
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
		out := wire.AppendMembers(nil, json.RawMessage(object), func(key []byte) bool { return string(key) == "_meta" })
		if got := string(append(wire.AppendKey(out, "d"), "4}"...)); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}
