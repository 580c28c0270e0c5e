package script

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/lua"
)

// TestErrorTable checks what scripts see of an error, all of its fields included.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	state := lua.New(lua.Options{})
	if err := state.Open(sandbox()...); err != nil {
		t.Fatal(err)
	}
	problem := fault.New(fault.Limit, "too many").WithHint("wait").WithDetails(map[string]int{"most": 3})
	state.Globals().SetString("e", errorTable(state, problem).Value())
	state.Globals().SetString("other", errorTable(state, problem).Value())
	chunk, err := state.Load(`
		local ok = pcall(setmetatable, e, {})
		return {e.code, e.message, e.hint, e.details.most, tostring(e), e .. other, 1 .. e, #e:upper(), e:rep(2, "-"), e.x == nil, ok, getmetatable(e)}`, "=test")
	if err != nil {
		t.Fatal(err)
	}
	results, err := state.Call(t.Context(), chunk.Value())
	if err != nil {
		t.Fatal(err)
	}
	got, err := state.ToJSON(results[0])
	const want = `["limit_exceeded","too many","wait",3,"too many","too manytoo many","1too many",8,"too many-too many",true,false,"error"]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
