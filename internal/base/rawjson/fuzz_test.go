package rawjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// oddities are texts that JSON parsers treat differently.
var oddities = []string{
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"A":1,"a":2}`, `{"":1}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud800"}`, `{"a":"\ud800\u0061"}`,
	`"\x"`, `"\u12"`, `"\u12g4"`, `"\"`, `"\\"`, `"\\\""`, `"a`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\xa9\"", "{\"\xff\":1}",
	"\"seven b\"", "\"eight by\"", "\"nine byte\"", "\"nine byt\\\"", "\"nine byt\n\"", "\"sixteen bytes...\"",
	`0`, `-0`, `01`, `-`, `-01`, `1.`, `.1`, `1.0`, `1e`, `1e+`, `1E-2`, `1e400`, `-1e-400`, `9007199254740993`, `123456789012345678901234567890`, `0x1`, `NaN`, `Infinity`,
	`true`, `tru`, `trueX`, `false`, `nul`, `null`, `None`, ``, ` `, "\t\r\n 1 \t\r\n", "\f1", "\v1", "\u00a01", "\ufeff1",
	`{}`, `{ }`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a" : 1 , "b":[ ] }`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{"a":1}}`, `{"a":1`, `{"a":[}`, `{"a":]}`,
	`[]`, `[ ]`, `[,]`, `[1,]`, `[1 2]`, `[1,[2,{"a":[3]}]]`, `[}`, `[1}`, `[1]]`, `[1] /* two */`, `["a":1]`,
	strings.Repeat("[", 63) + strings.Repeat("]", 63), strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat(`{"a":[`, 65) + strings.Repeat("]}", 65),
	strings.Repeat(`{"a":[`, 65) + strings.Repeat("}]", 65),
	strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth), strings.Repeat("[", rawjson.MaxDepth+1) + strings.Repeat("]", rawjson.MaxDepth+1),
}

// FuzzValid compares Valid with encoding/json.
func FuzzValid(f *testing.F) {
	for _, odd := range oddities {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := rawjson.Valid(data); (err == nil) != json.Valid(data) {
			t.Fatalf("%.200q: %v; encoding/json: %v", data, err, json.Valid(data))
		}
	})
}

// FuzzRead compares the reading functions with encoding/json.
func FuzzRead(f *testing.F) {
	for _, odd := range oddities {
		f.Add([]byte(odd), "a")
	}
	f.Add([]byte(`{"bIsErrorIsErrorIsErrorIsErrorIsErrorIsErrorIsErrorIsErrorIsErrorIsErr":1,"isError":true}`), "isError")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		if rawjson.Lacks(data, key) == bytes.Contains(data, []byte(key)) && !bytes.ContainsRune(data, '\\') {
			t.Fatalf("Lacks(%q, %q) is wrong", data, key)
		}
		if !utf8.Valid(data) || !json.Valid(data) {
			return // no message has it
		}
		data = bytes.TrimSpace(data)
		switch data[0] {
		case '{':
			readObject(t, data, key)
		case '[':
			var want []json.RawMessage
			items, ok := rawjson.Items(data)
			if err := json.Unmarshal(data, &want); err != nil || !ok || len(items) != len(want) || len(want) > 0 && !reflect.DeepEqual(items, want) {
				t.Fatalf("Items(%s) = %s, %v", data, items, ok)
			}
		case '"':
			var want string
			if got, ok := rawjson.Text(data); json.Unmarshal(data, &want) != nil || !ok || got != want {
				t.Fatalf("Text(%s) = %q, %v", data, got, ok)
			}
		default:
			var want float64
			isNumber := json.Unmarshal(data, &want) == nil && string(data) != "null"
			if got, ok := rawjson.Number(data); ok != isNumber || ok && got != want {
				t.Fatalf("Number(%s) = %v, %v", data, got, ok)
			}
		}
	})
}

func readObject(t *testing.T, object json.RawMessage, key string) {
	t.Helper()
	var want map[string]json.RawMessage
	if err := json.Unmarshal(object, &want); err != nil {
		t.Fatal(err)
	}
	found := make([]json.RawMessage, 2)
	rawjson.Pick(object, []string{key, "a"}, found)
	if !bytes.Equal(found[0], want[key]) || !bytes.Equal(found[1], want["a"]) {
		t.Fatalf("Pick(%s, %q) = %s", object, key, found)
	}
	isName := !strings.ContainsAny(key, "\"\\\b\f\n\r\t")
	if _, there := want[key]; isName && there && rawjson.Lacks(object, key) {
		t.Fatalf("%s does not lack %q", object, key)
	}
	if isName && rawjson.GetBool(object, key) != (string(want[key]) == "true") {
		t.Fatalf("GetBool(%s, %q)", object, key)
	}
	read := map[string]json.RawMessage{}
	rawjson.Each(object, func(key string, value json.RawMessage) bool {
		read[key] = value
		return true
	})
	if !reflect.DeepEqual(read, want) {
		t.Fatalf("Each(%s) gave %s", object, read)
	}
}

// FuzzText compares written strings with what encoding/json reads.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "plain", `"\`, "a\nb\x00\x1f\x7f", "é\u2028\U0001f600", "\xff\xc3(", "tools/call", "complete"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := rawjson.AppendText(nil, text)
		want := string([]rune(text)) // invalid bytes are U+FFFD
		var read string
		if err := json.Unmarshal(written, &read); err != nil || read != want {
			t.Fatalf("%q was written %s and reads %q, %v", text, written, read, err)
		}
		if again, ok := rawjson.Text(written); !ok || again != want {
			t.Fatalf("%q was written %s and we read %q", text, written, again)
		}
	})
}
