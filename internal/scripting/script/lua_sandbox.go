package script

import "github.com/luanette/luanette/lua"

// sandbox returns the parts of Lua's own libraries that scripts may use: everything that
// computes. Loading files, running programs, the debug library and the standard streams
// are never added.
func sandbox() []*lua.Library {
	return []*lua.Library{lua.Base, lua.CoroutineLib, tableLibrary(), lua.StringLib, lua.MathLib, lua.UTF8Lib}
}

// tableLibrary is Lua's table library with is_array.
func tableLibrary() *lua.Library {
	names := []string{"concat", "insert", "move", "pack", "remove", "sort", "unpack"}
	return lua.NewLibrary("table", []lua.Reg{{Name: "is_array", Fn: isArray}}, borrowed(lua.TableLib, names), nil)
}

// borrowed returns functions of one of Lua's libraries for use in one of ours.
func borrowed(from *lua.Library, names []string) []lua.Const {
	var consts []lua.Const
	for _, name := range names {
		if f, ok := from.Function(name); ok {
			consts = append(consts, lua.Const{Name: name, Value: f.Value()})
		}
	}
	return consts
}

// isArray reports whether its argument is a list: a table with the keys 1 to n and no
// others.
func isArray(c *lua.Call) error {
	t, ok := c.Arg(1).AsTable()
	if !ok {
		return c.Return(lua.Bool(false))
	}
	if err := fillLazy(c.State(), c.Arg(1)); err != nil {
		return err
	}
	count := 0
	for range t.All() {
		count++
	}
	if err := c.Step(count); err != nil {
		return err
	}
	return c.Return(lua.Bool(count == t.Len()))
}
