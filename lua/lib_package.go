package lua

import (
	"os"
	"strings"
)

// Package is the library with require and the table package. Modules come
// from package.preload and from the Loader the host gave; there are no paths.
var Package = NewLibrary("package", nil, []Const{{"config", String(packageConfig)}}, setupPackage)

// PackageFiles is Package with package.path, which require searches for files.
var PackageFiles = NewLibrary("package", []Reg{
	{"loadlib", packageLoadlib},
	{"searchpath", packageSearchpath},
}, []Const{
	{"config", String(packageConfig)},
	{"cpath", String("")},
	{"path", String("/usr/local/share/lua/5.4/?.lua;/usr/local/share/lua/5.4/?/init.lua;./?.lua;./?/init.lua")},
}, setupPackageFiles)

const packageConfig = "/\n;\n?\n!\n-\n"

var (
	requireFunction = NewFunc("require", baseRequire)
	preloadSearcher = NewFunc("package.searcher.preload", searchPreload)
	loaderSearcher  = NewFunc("package.searcher.loader", searchLoader)
	fileSearcher    = NewFunc("package.searcher.file", searchFiles)
	nativeSearcher  = NewFunc("package.searcher.native", searchNative)
)

func setupPackage(s *State, t *Table) error {
	return s.setupSearchers(t, preloadSearcher, loaderSearcher)
}

func setupPackageFiles(s *State, t *Table) error {
	return s.setupSearchers(t, preloadSearcher, loaderSearcher, fileSearcher, nativeSearcher)
}

func (s *State) setupSearchers(t *Table, searchers ...*Function) error {
	s.preload = NewTable(0, 0)
	list := NewTable(len(searchers), 0)
	for _, f := range searchers {
		list.Append(f.Bind(t.Value()).Value())
	}
	_ = t.setStr(nil, setupNames["loaded"], s.loaded.Value())
	_ = t.setStr(nil, setupNames["preload"], s.preload.Value())
	_ = t.setStr(nil, setupNames["searchers"], list.Value())
	return s.globals.setStr(s, setupNames["require"], requireFunction.Bind(t.Value()).Value())
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
	if f := c.state.preload.GetString(name); !f.IsNil() {
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

// searchFiles looks for a module along package.path.
func searchFiles(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	path, ok := c.Upvalue(1).table().GetString("path").AsString()
	if !ok {
		return c.Errorf("'package.path' must be a string")
	}
	file, tried, err := searchPath(c, name, path, ".", "/")
	if err != nil {
		return err
	}
	if file == "" {
		return c.Return(String(tried))
	}
	source, chunk, err := c.state.readChunk(file)
	if err != nil {
		return err
	}
	f, err := c.state.loadChunk(source, chunk, "bt", c.state.globals.Value())
	if err != nil {
		if isFatal(err) {
			return err
		}
		return c.Errorf("error loading module '%s' from file '%s':\n\t%s", name, file, err.Error())
	}
	return c.Return(f.Value(), String(file))
}

// searchNative looks for a module along package.cpath, for the sake of its
// message: such modules cannot be loaded.
func searchNative(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	path, ok := c.Upvalue(1).table().GetString("cpath").AsString()
	if !ok {
		return c.Errorf("'package.cpath' must be a string")
	}
	if path == "" {
		return nil
	}
	file, tried, err := searchPath(c, name, path, ".", "/")
	if err != nil {
		return err
	}
	if file != "" {
		return c.Errorf("error loading module '%s' from file '%s':\n\t%s", name, file, noNative)
	}
	return c.Return(String(tried))
}

const noNative = "dynamic libraries not enabled; check your Lua installation"

// searchPath returns the first readable file of a path, or what was tried.
func searchPath(c *Call, name, path, sep, rep string) (file, tried string, err error) {
	if sep != "" {
		name = strings.ReplaceAll(name, sep, rep)
	}
	var b strings.Builder
	for _, template := range strings.Split(path, ";") {
		if err := c.Step(1 + len(template)/16); err != nil {
			return "", "", err
		}
		file := strings.ReplaceAll(template, "?", name)
		if f, err := os.Open(file); err == nil {
			_ = f.Close()
			return file, "", nil
		}
		if b.Len() > 0 {
			b.WriteString("\n\t")
		}
		b.WriteString("no file '" + file + "'")
	}
	return "", b.String(), nil
}

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
	file, tried, err := searchPath(c, name, path, sep, rep)
	if err != nil {
		return err
	}
	if file == "" {
		return c.Return(Nil, String(tried))
	}
	return c.Return(String(file))
}

// packageLoadlib has nothing to offer: there are no C libraries.
func packageLoadlib(c *Call) error {
	return c.Return(Nil, String(noNative), String("absent"))
}
