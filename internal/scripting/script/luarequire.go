package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// luaLibraries are those of Lua itself that scripts have, and io, which is ours.
var luaLibraries = []string{"coroutine", "io", "math", "string", "table", "utf8"}

// requireLibrary is require for people who are used to it: what it gives is there
// as a global already, and nothing is ever loaded.
func requireLibrary(modules []host.Module) *lua.Library {
	names := slices.Clone(luaLibraries)
	for i := range modules {
		if modules[i].Name != "" {
			names = append(names, modules[i].Name)
		}
	}
	slices.Sort(names)
	return lua.NewLibrary("", []lua.Reg{{Name: "require", Fn: func(c *lua.Call) error {
		name, err := c.CheckString(1)
		if err != nil {
			return err
		}
		if module := c.State().Globals().GetString(name); slices.Contains(names, name) && !module.IsNil() {
			return c.Return(module)
		}
		return c.Errorf("%s", notRequired(name, names))
	}}}, nil, nil)
}

// notRequired says what can be required instead.
func notRequired(name string, names []string) string {
	meant := ""
	if near := suggest.Names(name, names, 1); len(near) > 0 {
		meant = fmt.Sprintf(" Did you mean '%s'?", near[0])
	}
	return fmt.Sprintf("module '%s' not found: scripts load no files.%s There are %s, all of them globals already", name, meant, strings.Join(names, ", "))
}
