package script

import "github.com/luanette/luanette/lua"

// sandbox is what a script has of Lua itself: everything that computes, nothing
// that reaches out. Loading files, other programs, the debug library and the
// standard streams are not filtered away; they are never put in.
func sandbox() []*lua.Library {
	return []*lua.Library{lua.Base, lua.CoroutineLib, lua.TableLib, lua.StringLib, lua.MathLib, lua.UTF8Lib}
}
