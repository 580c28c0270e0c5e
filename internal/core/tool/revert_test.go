package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

func TestRevertIsDeclared(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"name":"add","_meta":{"luanette/revert":{"tool":"remove","arguments":{"id":1}}}}`: `remove {"id":1}`,
		`{"name":"add","_meta":{"luanette/revert":{}}}`:                                     "",
		`{"name":"add","_meta":{"luanette/revert":"remove"}}`:                               "",
		`{"name":"luanette/revert"}`:                                                        "",
		``:                                                                                  "",
	} {
		info := tool.Info{Raw: json.RawMessage(raw)}
		r, ok := info.Revert()
		if got := r.Tool + " " + string(r.Arguments); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %v %s", raw, ok, got)
		}
	}
}

func TestRevertArguments(t *testing.T) {
	t.Parallel()
	const arguments = `{"path":"a","items":[{"name":"x","n":9007199254740993},{"name":"y"}],"a/b":1}`
	const result = `{"id":"7"}`
	for template, want := range map[string]string{
		``:                                   `{}`,
		`{"id":"$result/id","fixed":[true]}`: `{"fixed":[true],"id":"7"}`,
		`{"names":"$arguments/items/*/name","n":"$arguments/items/0/n","s":"$arguments/a~1b"}`: `{"n":9007199254740993,"names":["x","y"],"s":1}`,
		`"$result"`:                    `{"id":"7"}`,
		`{"all":["$result","$$x"]}`:    `{"all":[{"id":"7"},"$x"]}`,
		`{"text":"$other"}`:            `{"text":"$other"}`,
		`{"n":"$arguments/items/*/n"}`: "the call has no $arguments/items/*/n",
		`{"n":"$arguments/items/2"}`:   "the call has no $arguments/items/2",
		`{"n":"$result/id/x"}`:         "the call has no $result/id/x",
		`["$result"]`:                  "revert arguments: not an object",
	} {
		got, err := tool.Revert{Arguments: json.RawMessage(template)}.Fill(json.RawMessage(arguments), json.RawMessage(result))
		if err != nil && err.Error() != want || err == nil && string(got) != want {
			t.Errorf("%s: %s, %v, want %s", template, got, err, want)
		}
	}
	if _, err := (tool.Revert{Arguments: json.RawMessage(`{"a":"$arguments"}`)}).Fill(nil, nil); err == nil {
		t.Error("unknown arguments are filled in")
	}
}
