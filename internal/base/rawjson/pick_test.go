package rawjson

import (
	"encoding/json"
	"testing"
)

func TestPick(t *testing.T) { // not parallel: it counts allocations
	object := json.RawMessage(`{"a":1,"\u0062":{"a":2},"c":null,"a":[3]}`)
	out := []json.RawMessage{json.RawMessage("stale"), nil, nil, nil}
	keys := []string{"a", "b", "c", "d"}
	Pick(object, keys, out)
	for i, want := range []string{`[3]`, `{"a":2}`, `null`, ``} {
		if string(out[i]) != want {
			t.Errorf("%s is %s, want %s", keys[i], out[i], want)
		}
	}
	Pick(json.RawMessage(`[1]`), keys, out)
	if out[0] != nil {
		t.Errorf("an array has a member: %s", out[0])
	}
	plain := json.RawMessage(`{"a":1,"b":{"a":2},"c":null}`)
	if n := testing.AllocsPerRun(100, func() { Pick(plain, keys, out) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
