package params

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/base/redact"
)

func TestAttributes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300) // a cut inside a character would lose the whole trace
	got := map[string]any{}
	for _, a := range Attributes("p", []byte(`{"style":"jazz","bars":8,"big":9007199254740993,"level":-1.5,"loud":true,"none":null,
		"api_key":"k","max_tokens":5,"login":{"password":"p","user":"u","deep":{"er":1}},"secrets":{"a":"b"},"list":[{"token":"t"},1],"long":"x`+long+`"}`)) {
		got[string(a.Key)] = a.Value.AsInterface()
	}
	for key, want := range map[string]any{
		"p.style": "jazz", "p.bars": int64(8), "p.big": int64(9007199254740993), "p.level": -1.5, "p.loud": true, "p.none": "null",
		"p.api_key": "[redacted]", "p.max_tokens": int64(5), "p.login.password": "[redacted]", "p.login.user": "u", "p.login.deep.er": int64(1),
		"p.secrets": "[redacted]", "p.list": `[{"token":"[redacted]"},1]`,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if text := got["p.long"].(string); !utf8.ValidString(text) || len(text) > 230 {
		t.Errorf("a long one is %q", text)
	}
	if len(got) != 14 {
		t.Errorf("%d attributes: %v", len(got), got)
	}
}

func TestAttributesAreBounded(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	got := Attributes("p", []byte("{"+strings.Join(many, ",")+"}"))
	if len(got) != most+1 || string(got[most].Key) != "p.omitted" || got[most].Value.AsInt64() != 1000-most {
		t.Errorf("%d attributes, last %v", len(got), got[len(got)-1])
	}
	if got := Attributes("p", []byte(`{"a":"`+strings.Repeat("x", longestAll)+`"}`)); len(got) != 1 || !strings.HasPrefix(got[0].Value.AsString(), "(65") {
		t.Errorf("huge: %v", got)
	}
	if got := Attributes("p", []byte(strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000))); len(got) != 1 && len(got) != 0 {
		t.Errorf("deep: %v", got)
	}
	for _, none := range []string{``, `null`, `[1]`, `"x"`} {
		if got := Attributes("p", []byte(none)); got != nil {
			t.Errorf("%q: %v", none, got)
		}
	}
}

// TestDeferred checks that what Expand makes of an object is what Attributes returns and
// the object as text, and that a long object is not kept.
func TestDeferred(t *testing.T) {
	t.Parallel()
	text := func(list []attribute.KeyValue) string { return fmt.Sprint(list) }
	for _, object := range []string{`{"api_key":"k","path":"x"}`, `{"code":"` + strings.Repeat("word ", 1000) + `","api_key":"k"}`, `[1]`, ``, `{"torn`} {
		list := append([]attribute.KeyValue{attribute.String("first", "1")}, Deferred("p", []byte(object))...)
		want := append([]attribute.KeyValue{attribute.String("first", "1"), attribute.String("p", redact.JSON([]byte(object)))}, Attributes("p", []byte(object))...)
		if got := Expand(append(list, attribute.String("last", "2"))); !strings.Contains(text(got), "last") || text(slices.DeleteFunc(got, func(a attribute.KeyValue) bool { return a.Key == "last" })) != text(want) {
			t.Errorf("%.40s: %s", object, text(got))
		}
		if len(object) > longestRaw && strings.Contains(text(list), object) {
			t.Error("a long object is kept")
		}
	}
	if list := []attribute.KeyValue{attribute.Int("n", 1)}; &Expand(list)[0] != &list[0] {
		t.Error("a list without objects is copied")
	}
}
