package lua

import "strings"

// StringLib is the library "string", which is also what methods of strings
// are looked up in. Its metatable makes arithmetic convert strings.
var StringLib = NewLibrary("string", []Reg{
	{"byte", stringByte},
	{"char", stringChar},
	{"dump", stringDump},
	{"find", stringFind},
	{"format", stringFormat},
	{"gmatch", stringGmatch},
	{"gsub", stringGsub},
	{"len", stringLen},
	{"lower", stringLower},
	{"match", stringMatch},
	{"rep", stringRep},
	{"reverse", stringReverse},
	{"sub", stringSub},
	{"upper", stringUpper},
	{"pack", stringPack},
	{"packsize", stringPacksize},
	{"unpack", stringUnpack},
}, nil, setupStrings)

// setupStrings gives the strings of a state their metatable.
func setupStrings(s *State, lib *Table) error {
	meta := stringMetamethods.template.borrow()
	if err := meta.setStr(s, eventNames["__index"], lib.Value()); err != nil {
		return err
	}
	s.SetStringMetatable(meta)
	return nil
}

// stringMetamethods are the arithmetic operators of strings.
var stringMetamethods = NewLibrary("string.meta", []Reg{
	{"__add", stringArith(OpAdd, "__add")},
	{"__sub", stringArith(OpSub, "__sub")},
	{"__mul", stringArith(OpMul, "__mul")},
	{"__mod", stringArith(OpMod, "__mod")},
	{"__pow", stringArith(OpPow, "__pow")},
	{"__div", stringArith(OpDiv, "__div")},
	{"__idiv", stringArith(OpIDiv, "__idiv")},
	{"__unm", stringArith(OpUnm, "__unm")},
}, nil, nil)

// stringArith makes the metamethod for one operator: it converts both
// operands to numbers, or tries the metamethod of the second.
func stringArith(op ArithOp, event string) Func {
	return func(c *Call) error {
		a, ok1 := toNumber(c.Arg(1))
		b, ok2 := toNumber(c.Arg(2))
		if ok1 && ok2 {
			v, err := c.Arith(op, a, b)
			if err != nil {
				return err
			}
			return c.Return(v)
		}
		method := Nil
		if !c.Arg(2).isString() {
			method = c.Metafield(c.Arg(2), event)
		}
		if method.IsNil() {
			return c.Errorf("attempt to %s a '%s' with a '%s'", strings.TrimPrefix(event, "__"),
				c.Arg(1).TypeName(), c.Arg(2).TypeName())
		}
		v, err := c.call1(method, c.Arg(1), c.Arg(2))
		if err != nil {
			return err
		}
		return c.Return(v)
	}
}
