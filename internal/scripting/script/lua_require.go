package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// luaLibraries are Lua's own libraries that scripts have, and io, which is ours.
var luaLibraries = []string{"coroutine", "io", "math", "string", "table", "utf8"}

// requireLibrary provides require for scripts that expect it: it returns globals that
// exist already, and never loads anything.
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

// notRequired is the error text for an unknown module.
func notRequired(name string, names []string) string {
	meant := ""
	if near := suggest.Names(name, names, 1); len(near) > 0 {
		meant = fmt.Sprintf(" Did you mean '%s'?", near[0])
	}
	return fmt.Sprintf("module '%s' not found: scripts cannot load files.%s Available as globals: %s", name, meant, strings.Join(names, ", "))
}
