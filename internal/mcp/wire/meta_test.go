package wire_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

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

func TestStripProtocol(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"content":[],"_meta":{"x/y":1,"io.modelcontextprotocol/serverInfo":{}}}`: `{"content":[],"_meta":{"x/y":1}}`,
		`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`:         `{"content":[]}`,
		`{"_meta":{"io.modelcontextprotocol\/serverInfo":{}}}`:                     `{}`, // an escaped slash
		`{"_meta":{}}`: `{"_meta":{}}`,
	} {
		if got := string(wire.StripProtocol(json.RawMessage(object))); got != want {
			t.Errorf("%s became %s, want %s", object, got, want)
		}
	}
}

func TestToLegacy(t *testing.T) {
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
		if got := string(wire.ToLegacy(json.RawMessage(result))); got != want {
			t.Errorf("%s became %s", result, got)
		}
	}
}

// FuzzToLegacy compares the result for the sessions era with what encoding/json makes of
// the same object.
func FuzzToLegacy(f *testing.F) {
	for _, seed := range []string{
		`{"resultType":"complete","_meta":{"io.modelcontextprotocol/a":1,"b":2}}`,
		`{"resultType":"complete","_meta":{"io.modelcontextprotocol/a":1},"_meta":[]}`,
		`{"_meta":{},"\u0072esultType":1}`, `{"a":1,"_meta":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		want := members(object)
		if want == nil {
			return // only objects have these members
		}
		delete(want, "resultType")
		if meta := members(want["_meta"]); len(meta) > 0 {
			maps.DeleteFunc(meta, func(key string, _ json.RawMessage) bool { return strings.HasPrefix(key, wire.ProtocolPrefix) })
			rest := rawjson.DeleteFunc(want["_meta"], wire.IsProtocol)
			if !reflect.DeepEqual(members(rest), meta) {
				t.Fatalf("%s without the protocol's own keys is %s", want["_meta"], rest)
			}
			if want["_meta"] = rest; len(meta) == 0 {
				delete(want, "_meta")
			}
		}
		if got := wire.ToLegacy(object); !reflect.DeepEqual(members(got), want) {
			t.Fatalf("%s became %s", object, got)
		}
	})
}

// members decodes an object; nil when it is none, or not valid.
func members(object []byte) (decoded map[string]json.RawMessage) {
	if !utf8.Valid(object) || json.Unmarshal(object, &decoded) != nil {
		return nil
	}
	return decoded
}
