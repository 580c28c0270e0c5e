package lua

import (
	"fmt"
)

// CheckAny reports an absent argument i.
func (c *Call) CheckAny(i int) error {
	if i > len(c.args) {
		return c.ArgError(i, "value expected")
	}
	return nil
}

// CheckInt returns argument i as an integer, converting floats and strings
// with an exact integer value.
func (c *Call) CheckInt(i int) (int64, error) {
	v := c.Arg(i)
	if v.isInt() {
		return v.int(), nil
	}
	if n, ok := toInteger(v); ok {
		return n, nil
	}
	if _, ok := toNumber(v); ok {
		return 0, c.ArgError(i, "number has no integer representation")
	}
	return 0, c.TypeError(i, "number")
}

// CheckNumber returns argument i as an integer or float, converting strings.
func (c *Call) CheckNumber(i int) (Value, error) {
	if v, ok := toNumber(c.Arg(i)); ok {
		return v, nil
	}
	return Nil, c.TypeError(i, "number")
}

// CheckFloat returns argument i as a float, converting integers and strings.
func (c *Call) CheckFloat(i int) (float64, error) {
	v := c.Arg(i)
	if v.isFloat() {
		return v.float(), nil
	}
	v, err := c.CheckNumber(i)
	f, _ := v.AsFloat()
	return f, err
}

// CheckString returns argument i as a string, converting numbers.
func (c *Call) CheckString(i int) (string, error) {
	v := c.Arg(i)
	if v.isString() {
		return v.str().s, nil
	}
	if v.isNumber() {
		return v.String(), nil
	}
	return "", c.TypeError(i, "string")
}

// CheckTable returns argument i, which must be a table.
func (c *Call) CheckTable(i int) (*Table, error) {
	if t, ok := c.Arg(i).AsTable(); ok {
		return t, nil
	}
	return nil, c.TypeError(i, "table")
}

// CheckFunction returns argument i, which must be a function.
func (c *Call) CheckFunction(i int) (*Function, error) {
	if f, ok := c.Arg(i).AsFunction(); ok {
		return f, nil
	}
	return nil, c.TypeError(i, "function")
}

// OptInt is CheckInt with a default for nil and absent arguments.
func (c *Call) OptInt(i int, def int64) (int64, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckInt(i)
}

// OptFloat is CheckFloat with a default for nil and absent arguments.
func (c *Call) OptFloat(i int, def float64) (float64, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckFloat(i)
}

// OptString is CheckString with a default for nil and absent arguments.
func (c *Call) OptString(i int, def string) (string, error) {
	if c.Arg(i).IsNil() {
		return def, nil
	}
	return c.CheckString(i)
}

// CheckOption returns the position of argument i in a list of words.
func (c *Call) CheckOption(i int, def string, options ...string) (int, error) {
	name, err := c.OptString(i, def)
	if def == "" {
		name, err = c.CheckString(i)
	}
	if err != nil {
		return 0, err
	}
	for at, o := range options {
		if o == name {
			return at, nil
		}
	}
	return 0, c.ArgError(i, fmt.Sprintf("invalid option '%s'", name))
}

// Errorf returns an error whose message begins with the position of the
// function's caller, as error does at level 1.
func (c *Call) Errorf(format string, args ...any) error {
	return Throw(String(c.state.where(c.thread, 1) + fmt.Sprintf(format, args...)))
}

// ArgError returns the error for a wrong argument i.
func (c *Call) ArgError(i int, msg string) error {
	name, kind := c.state.callerName(c.thread)
	if kind == "method" {
		i--
		if i == 0 {
			return c.Errorf("calling '%s' on bad self (%s)", name, msg)
		}
	}
	if name == "" {
		name = c.state.globalName(c.fn)
	}
	if name == "" {
		name = "?"
	}
	return c.Errorf("bad argument #%d to '%s' (%s)", i, name, msg)
}

// TypeError returns the error for an argument i that should be of the type
// named.
func (c *Call) TypeError(i int, want string) error {
	got := "no value"
	if i <= len(c.args) {
		got = c.state.typeName(c.args[i-1])
	}
	return c.ArgError(i, want+" expected, got "+got)
}
