package lua

import (
	"errors"
	"io"
	"os"
	"strings"
)

// Load compiles a chunk and returns it as a function whose globals are the
// state's. See Compile for chunk names.
func (s *State) Load(source, chunkname string) (*Function, error) {
	p, err := s.Compile(source, chunkname)
	if err != nil {
		return nil, err
	}
	return s.Instantiate(p, s.globals.Value()), nil
}

// Instantiate returns a function that runs compiled code with env as its
// globals.
func (s *State) Instantiate(p *Proto, env Value) *Function {
	f := newClosure(p)
	for i := range f.upvalues {
		f.upvalues[i] = newUpvalue(Nil)
	}
	if len(f.upvalues) > 0 {
		f.upvalues[0].close = env
	}
	s.account.memory += int64(closureSize)
	return f
}

// loadChunk compiles text or reads a binary chunk, as far as mode allows.
func (s *State) loadChunk(source, chunkname, mode string, env Value) (*Function, error) {
	kind := "text"
	if strings.HasPrefix(source, binarySignature[:1]) {
		kind = "binary"
	}
	if !strings.Contains(mode, kind[:1]) {
		return nil, Throw(String("attempt to load a " + kind + " chunk (mode is '" + mode + "')"))
	}
	var p *Proto
	var err error
	if kind == "binary" {
		if !s.opts.BinaryChunks {
			return nil, Throw(String("attempt to load a binary chunk, which this host does not allow"))
		}
		p, err = s.undump(source, chunkname)
	} else {
		p, err = s.Compile(source, chunkname)
	}
	if err != nil {
		return nil, err
	}
	return s.Instantiate(p, env), nil
}

func baseLoad(c *Call) error {
	mode, err := c.OptString(3, "bt")
	if err != nil {
		return err
	}
	var source, name string
	if text, ok := c.Arg(1).AsString(); ok {
		source = text
		name, err = c.OptString(2, text)
	} else {
		if _, err := c.CheckFunction(1); err != nil {
			return err
		}
		if name, err = c.OptString(2, "=(load)"); err != nil {
			return err
		}
		source, err = readPieces(c)
	}
	if err != nil {
		return failLoading(c, err)
	}
	env := c.state.globals.Value()
	if c.NArgs() >= 4 {
		env = c.Arg(4)
	}
	f, err := c.state.loadChunk(source, name, mode, env)
	if err != nil {
		return failLoading(c, err)
	}
	return c.Return(f.Value())
}

// failLoading returns nil and the message, unless the budget ran out.
func failLoading(c *Call, err error) error {
	if isFatal(err) {
		return err
	}
	return c.Return(Nil, c.state.asError(err).Value)
}

// readPieces collects what the reader function of load returns.
func readPieces(c *Call) (string, error) {
	var b strings.Builder
	for {
		v, err := c.call1(c.Arg(1))
		if err != nil {
			return "", err
		}
		piece, ok := v.AsString()
		if !ok && !v.IsNil() {
			return "", Throw(String("reader function must return a string"))
		}
		if piece == "" {
			return b.String(), nil
		}
		if err := c.Alloc(len(piece)); err != nil {
			return "", err
		}
		b.WriteString(piece)
	}
}

// readChunk reads a file for loadfile and dofile; "" is the standard input.
// A first line beginning with # is skipped but counted.
func (s *State) readChunk(path string) (source, chunkname string, err error) {
	var data []byte
	if path == "" {
		chunkname = "=stdin"
		data, err = io.ReadAll(s.stdin())
	} else {
		chunkname = "@" + path
		data, err = os.ReadFile(path)
	}
	if err != nil {
		reason := err.Error()
		if e := new(os.PathError); errors.As(err, &e) {
			reason = e.Err.Error()
		}
		return "", "", Throw(String("cannot open " + path + ": " + reason))
	}
	return skipShebang(string(data)), chunkname, nil
}

// skipShebang drops a byte order mark and a first line beginning with #,
// keeping its line break so that lines count right.
func skipShebang(source string) string {
	source = strings.TrimPrefix(source, "\xef\xbb\xbf")
	if strings.HasPrefix(source, "#") {
		if n := strings.IndexByte(source, '\n'); n >= 0 {
			rest := source[n:]
			if strings.HasPrefix(rest[1:], binarySignature) {
				return rest[1:]
			}
			return rest
		}
		return ""
	}
	return source
}

func baseLoadfile(c *Call) error {
	path, err := c.OptString(1, "")
	if err != nil {
		return err
	}
	mode, err := c.OptString(2, "bt")
	if err != nil {
		return err
	}
	source, name, err := c.state.readChunk(path)
	if err != nil {
		return failLoading(c, err)
	}
	env := c.state.globals.Value()
	if c.NArgs() >= 3 {
		env = c.Arg(3)
	}
	f, err := c.state.loadChunk(source, name, mode, env)
	if err != nil {
		return failLoading(c, err)
	}
	return c.Return(f.Value())
}

// startDofile loads a file and calls it in place of itself.
func (s *State) startDofile(t *Thread, at, nargs int) (exit bool, err error) {
	c := s.argCheck(t, at, nargs)
	path, err := c.OptString(1, "")
	if err != nil {
		return false, err
	}
	source, name, err := s.readChunk(path)
	if err != nil {
		return false, err
	}
	f, err := s.loadChunk(source, name, "bt", s.globals.Value())
	if err != nil {
		return false, err
	}
	if err := t.reserve(at + 2); err != nil {
		return false, err
	}
	t.stack[at+1] = f.Value()
	return s.call(t, at+1, 0, returnTo{want: -1, flags: frameCallback})
}
