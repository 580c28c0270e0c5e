package script

import (
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/lua"
)

// An error of a host function is a table in Lua: code, message and, if there are any,
// hint and details. It prints and concatenates as its message, and has the methods of
// strings, so that scripts that expect a text still work.

// errorMetaName is the registry key of the metatable of errors, and its __name.
const errorMetaName = "luanette.error"

// errorFunctions are the metamethods of errors. They belong to no library, because
// scripts do not see them.
var errorFunctions = []*lua.Function{
	lua.NewFunc(errorMetaName+".tostring", errorText),
	lua.NewFunc(errorMetaName+".concat", errorConcat),
	lua.NewFunc(errorMetaName+".index", errorMethod),
	errorMethodCall,
}

// errorMethodCall is bound to a function of the string library.
var errorMethodCall = lua.NewFunc(errorMetaName+".method", callErrorMethod)

// errorTable returns an error as scripts see it.
func errorTable(s *lua.State, f *fault.Error) *lua.Table {
	t := lua.NewTable(0, 4)
	t.SetString("code", lua.String(string(f.Code)))
	t.SetString("message", lua.String(f.Error()))
	if hint := fault.HintOf(f); hint != "" {
		t.SetString("hint", lua.String(hint))
	}
	if len(f.Details) > 0 {
		if details, err := lua.FromJSON(s, f.Details); err == nil {
			t.SetString("details", details)
		}
	}
	t.SetMetatable(errorMeta(s))
	return t
}

// errorMeta returns the metatable of errors in a state, with its own instances of the
// functions.
func errorMeta(s *lua.State) *lua.Table {
	if meta, ok := s.Registry().GetString(errorMetaName).AsTable(); ok {
		return meta
	}
	meta := lua.NewTable(0, 5)
	meta.SetString("__name", lua.String(errorMetaName))
	meta.SetString("__metatable", lua.String("error"))
	for i, name := range []string{"__tostring", "__concat", "__index"} {
		meta.SetString(name, errorFunctions[i].Bind().Value())
	}
	s.Registry().SetString(errorMetaName, meta.Value())
	return meta
}

// raisedFault returns the fault of an error table, or nil for other values.
func raisedFault(v lua.Value) *fault.Error {
	t, ok := v.AsTable()
	if !ok || t.Metatable() == nil {
		return nil
	}
	if name, _ := t.Metatable().GetString("__name").AsString(); name != errorMetaName {
		return nil
	}
	code, _ := t.GetString("code").AsString()
	hint, _ := t.GetString("hint").AsString()
	return fault.New(fault.Code(code), "%s", errorMessage(t)).WithHint("%s", hint)
}

// extendError returns a copy of an error table whose message ends with more text.
func extendError(v lua.Value, more string) lua.Value {
	t, _ := v.AsTable()
	extended := lua.NewTable(0, 4)
	for key, value := range t.All() {
		_ = extended.Set(key, value) // a key of a table is a valid key
	}
	extended.SetString("message", lua.String(errorMessage(t)+more))
	extended.SetMetatable(t.Metatable())
	return extended.Value()
}

func errorMessage(t *lua.Table) string {
	message, _ := t.GetString("message").AsString()
	return message
}

// messageAt returns the message of an error, or the text of any other argument.
func messageAt(c *lua.Call, i int) (string, error) {
	if f := raisedFault(c.Arg(i)); f != nil {
		return f.Error(), nil
	}
	return c.ToString(c.Arg(i))
}

func errorText(c *lua.Call) error {
	text, err := messageAt(c, 1)
	if err != nil {
		return err
	}
	return c.Return(lua.String(text))
}

func errorConcat(c *lua.Call) error {
	left, err := messageAt(c, 1)
	if err != nil {
		return err
	}
	right, err := messageAt(c, 2)
	if err != nil {
		return err
	}
	joined, err := c.NewString([]byte(left + right))
	if err != nil {
		return err
	}
	return c.Return(joined)
}

// errorMethod returns a method of strings, which applies to the message.
func errorMethod(c *lua.Call) error {
	methods := c.State().StringMetatable()
	if methods == nil {
		return c.Return(lua.Nil)
	}
	method, err := c.Index(methods.GetString("__index"), c.Arg(2))
	if err != nil || method.IsNil() {
		return errors.Join(err, c.Return(lua.Nil))
	}
	return c.Return(errorMethodCall.Bind(method).Value())
}

func callErrorMethod(c *lua.Call) error {
	args := append([]lua.Value{}, c.Args()...)
	if len(args) > 0 {
		if f := raisedFault(args[0]); f != nil {
			args[0] = lua.String(f.Error())
		}
	}
	results, err := c.Call(c.Upvalue(1), args...)
	if err != nil {
		return err
	}
	return c.Return(results...)
}
