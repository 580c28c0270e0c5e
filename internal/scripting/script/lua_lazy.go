package script

import (
	"errors"
	"slices"

	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// lazyKey is the key of a state's lazyTables.
type lazyKey struct{}

// lazyTables are the made-up answers of a rehearsal that the script has not looked into.
// They are empty tables whose metatable fills them on first use.
type lazyTables struct {
	next    lua.Value // Lua's own
	meta    *lua.Table
	waiting map[*lua.Table]*host.Lazy
}

// init makes the metatable.
func (l *lazyTables) init() {
	l.meta, l.waiting = lua.NewTable(0, 4), map[*lua.Table]*host.Lazy{}
	l.on("__index", func(c *lua.Call) error {
		value, err := c.Index(c.Arg(1), c.Arg(2))
		if err != nil {
			return err
		}
		return c.Return(value)
	})
	l.on("__newindex", func(c *lua.Call) error { return c.SetIndex(c.Arg(1), c.Arg(2), c.Arg(3)) })
	l.on("__len", func(c *lua.Call) error {
		n, err := c.Len(c.Arg(1))
		if err != nil {
			return err
		}
		return c.Return(lua.Int(n))
	})
	l.on("__pairs", func(c *lua.Call) error { return c.Return(l.next, c.Arg(1), lua.Nil) })
}

// on sets a metamethod, which fills its table first.
func (l *lazyTables) on(event string, use lua.Func) {
	l.meta.SetString(event, lua.NewFunc("lazy"+event, func(c *lua.Call) error {
		if err := l.fill(c.State(), c.Arg(1)); err != nil {
			return err
		}
		return use(c)
	}).Value())
}

// rawAccess are the functions that bypass metatables. A script that uses one gets its
// answers as plain tables, which count as looked at.
var rawAccess = []string{"next", "rawget", "rawset", "rawlen", "getmetatable", "setmetatable", "debug", "_G", "_ENV", "load", "require"}

// mayBeLazy reports whether code uses tables only in ways that lazy tables notice.
func mayBeLazy(code *lua.Proto) bool {
	raw := false
	named := code.Globals(func(name string) { raw = raw || slices.Contains(rawAccess, name) })
	return named && !raw
}

// lazyTable returns a made-up answer as a table.
func lazyTable(s *lua.State, v *host.Lazy) (lua.Value, error) {
	l, _ := s.Stored(lazyKey{}).(*lazyTables)
	if l == nil {
		v.Look()
		return lua.FromJSON(s, v.JSON)
	}
	if l.meta == nil {
		l.init()
	}
	t := lua.NewTable(0, 0)
	t.SetMetatable(l.meta)
	l.waiting[t] = v
	return t.Value(), nil
}

// fill gives a lazy table its content; other values stay as they are.
func (l *lazyTables) fill(s *lua.State, v lua.Value) error {
	t, ok := v.AsTable()
	if !ok || l.waiting[t] == nil {
		return nil
	}
	answer := l.waiting[t]
	delete(l.waiting, t)
	value, err := lua.FromJSON(s, answer.JSON)
	if err != nil {
		return err
	}
	content, ok := value.AsTable()
	if !ok {
		return errors.New("a made-up answer is not a table")
	}
	t.SetMetatable(nil)
	t.MarkArray(content.IsArray())
	for key, value := range content.All() {
		if err := t.Set(key, value); err != nil {
			return err
		}
	}
	answer.Look()
	return nil
}

// fillLazy fills the lazy tables in a value that leaves the script.
func fillLazy(s *lua.State, v lua.Value) error {
	l, _ := s.Stored(lazyKey{}).(*lazyTables)
	if l == nil || len(l.waiting) == 0 {
		return nil
	}
	return l.fillAll(s, v, map[*lua.Table]bool{})
}

func (l *lazyTables) fillAll(s *lua.State, v lua.Value, seen map[*lua.Table]bool) error {
	t, ok := v.AsTable()
	if !ok || seen[t] {
		return nil
	}
	seen[t] = true
	if err := l.fill(s, v); err != nil {
		return err
	}
	for _, value := range t.All() {
		if err := l.fillAll(s, value, seen); err != nil {
			return err
		}
	}
	return nil
}
