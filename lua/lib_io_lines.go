package lua

// maxLineFormats is how many formats lines accepts.
const maxLineFormats = 250

// linesIterator is what lines returns an instance of. Its values are the
// file, whether to close it in the end, and the formats.
var linesIterator = NewFunc("io.lines.iterator", nextLine)

func fileLines(c *Call) error {
	if _, err := c.checkOpen(1); err != nil {
		return err
	}
	return returnLines(c, c.Arg(1), false)
}

func ioLines(c *Call) error {
	if !c.Arg(1).IsNil() {
		name, err := c.CheckString(1)
		if err != nil {
			return err
		}
		file, err := c.openOrRaise(name, "r")
		if err != nil {
			return err
		}
		return returnLines(c, file, true)
	}
	s, err := c.defaultStream(inputKey)
	if err == nil && s.closed {
		err = c.Errorf("attempt to use a closed file")
	}
	if err != nil {
		return err
	}
	return returnLines(c, c.state.registry.GetString(inputKey), false)
}

// returnLines returns an iterator over a file; one that closes it also gives
// the file as the variable that a for loop closes.
func returnLines(c *Call, file Value, closes bool) error {
	var formats []Value
	if c.NArgs() > 1 {
		formats = c.Args()[1:]
	}
	if len(formats) > maxLineFormats {
		return c.ArgError(maxLineFormats+2, "too many arguments")
	}
	if err := c.Alloc(closureSize + (2+len(formats))*int(valueSize)); err != nil {
		return err
	}
	iterator := linesIterator.Bind(append([]Value{file, Bool(closes)}, formats...)...).Value()
	if closes {
		return c.Return(iterator, Nil, Nil, file)
	}
	return c.Return(iterator)
}

func nextLine(c *Call) error {
	bound := c.Function().bound
	u, _ := bound[0].AsUserdata()
	s, _ := u.Data.(*stream)
	if s.closed {
		return c.Errorf("file is already closed")
	}
	if err := readFormats(c, s, bound[2:], 2); err != nil {
		return err
	}
	if c.rets[0].Truthy() {
		return nil
	}
	if len(c.rets) > 1 {
		return c.Errorf("%s", c.rets[1].String())
	}
	if bound[1].Truthy() {
		s.close()
	}
	return c.Return()
}
