package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/base/rawjson"
)

func TestDescend(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"items":[10,{"n":1}],"a/b":2,"m~n":3,"~1":4,"":5,"0":6}`)
	list, _ := rawjson.Get(value, "items")
	for _, c := range []struct {
		in          json.RawMessage
		token, want string // no want: there is no such part
	}{
		{value, "items", `[10,{"n":1}]`},
		{value, "a~1b", "2"},
		{value, "m~0n", "3"},
		{value, "~01", "4"},
		{value, "", "5"},
		{value, "0", "6"},
		{value, "a", ""},
		{list, "0", "10"},
		{list, "1", `{"n":1}`},
		{list, "2", ""},
		{list, "-1", ""},
		{list, "-", ""},
		{list, "n", ""},
		{list, "", ""},
		{json.RawMessage(`[]`), "0", ""},
		{json.RawMessage(`"text"`), "0", ""},
		{json.RawMessage(`null`), "a", ""},
		{nil, "a", ""},
	} {
		got, ok := rawjson.Descend(c.in, c.token)
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("Descend(%s, %q) = %s, %v, want %s", c.in, c.token, got, ok, c.want)
		}
	}
}
