package lua

import "strings"

// Package is the library with require and the table package. Modules come
// from package.preload and from the Loader the host gave; the search path is
// the host's affair.
var Package = NewLibrary("package", []Reg{
	{"searchpath", packageSearchpath},
}, []Const{
	{"config", String("/\n;\n?\n!\n-\n")},
	{"cpath", String("")},
	{"path", String("./?.lua;./?/init.lua")},
}, setupPackage)

var requireFunction = NewFunc("require", baseRequire)

var searchers = []*Function{
	NewFunc("package.searcher.preload", searchPreload),
	NewFunc("package.searcher.loader", searchLoader),
}

func setupPackage(s *State, t *Table) error {
	s.preload = NewTable(0, 0)
	list := NewTable(len(searchers), 0)
	for _, f := range searchers {
		list.Append(f.Bind().Value())
	}
	t.SetString("loaded", s.loaded.Value())
	t.SetString("preload", s.preload.Value())
	t.SetString("searchers", list.Value())
	s.packageTable = t
	return s.globals.setStr(s, s.intern("require"), requireFunction.Bind(t.Value()).Value())
}

func baseRequire(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	key := String(name)
	if v := c.state.loaded.get(key); v.Truthy() {
		return c.Return(v)
	}
	list, ok := c.Upvalue(1).table().GetString("searchers").AsTable()
	if !ok {
		return c.Errorf("'package.searchers' must be a table")
	}
	loader, data, err := findModule(c, list, name)
	if err != nil {
		return err
	}
	v, err := c.call1(loader, key, data)
	if err != nil {
		return err
	}
	if !v.IsNil() {
		c.state.loaded.SetString(name, v)
	} else if v = c.state.loaded.get(key); v.IsNil() {
		v = Bool(true)
		c.state.loaded.SetString(name, v)
	}
	return c.Return(v, data)
}

// findModule asks the searchers in turn for a loader.
func findModule(c *Call, list *Table, name string) (loader, data Value, err error) {
	var tried strings.Builder
	for i := int64(1); ; i++ {
		searcher := list.getInt(i)
		if searcher.IsNil() {
			return Nil, Nil, c.Errorf("module '%s' not found:%s", name, tried.String())
		}
		rets, err := c.Call(searcher, String(name))
		if err != nil {
			return Nil, Nil, err
		}
		if len(rets) == 0 {
			continue
		}
		if rets[0].isFunction() {
			if len(rets) > 1 {
				data = rets[1]
			}
			return rets[0], data, nil
		}
		if msg, ok := rets[0].AsString(); ok {
			if !strings.HasPrefix(msg, "\n\t") {
				tried.WriteString("\n\t")
			}
			tried.WriteString(msg)
		}
	}
}

func searchPreload(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	preload := c.state.preload
	if t, ok := c.state.packageTable.GetString("preload").AsTable(); ok {
		preload = t
	}
	if f := preload.GetString(name); !f.IsNil() {
		return c.Return(f, String(":preload:"))
	}
	return c.Return(String("no field package.preload['" + name + "']"))
}

func searchLoader(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if c.state.opts.Loader == nil {
		return nil
	}
	source, chunk, ok, err := c.state.opts.Loader(c.Context(), name)
	if err != nil {
		return err
	}
	if !ok {
		return c.Return(String(source))
	}
	f, err := c.state.loadChunk(source, chunk, "t", c.state.globals.Value())
	if err != nil {
		if isFatal(err) {
			return err
		}
		return c.Errorf("error loading module '%s' from file '%s':\n\t%s", name, strings.TrimPrefix(chunk, "@"), err.Error())
	}
	return c.Return(f.Value(), String(strings.TrimPrefix(chunk, "@")))
}

// packageSearchpath only builds the names: whether files exist is for the
// loader to know.
func packageSearchpath(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	path, err := c.CheckString(2)
	if err != nil {
		return err
	}
	sep, err := c.OptString(3, ".")
	if err != nil {
		return err
	}
	rep, err := c.OptString(4, "/")
	if err != nil {
		return err
	}
	if sep != "" {
		name = strings.ReplaceAll(name, sep, rep)
	}
	var tried []string
	for _, template := range strings.Split(path, ";") {
		tried = append(tried, "no file '"+strings.ReplaceAll(template, "?", name)+"'")
	}
	return c.Return(Nil, String(strings.Join(tried, "\n\t")))
}
