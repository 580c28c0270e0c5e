package lua

import (
	"io"
	"os"
	"os/exec"
	"strings"
)

// IOLib is the library "io". It gives scripts the file system and, with
// popen, other programs: it is no part of a sandbox.
//
// The standard streams are those of [Options]. A host that wants speed hands
// in a *bufio.Writer, which io.flush flushes, and flushes it in the end; files
// still open then are closed by [State.CloseFiles].
var IOLib = NewLibrary("io", []Reg{
	{"close", ioClose},
	{"flush", ioFlush},
	{"input", func(c *Call) error { return defaultFile(c, inputKey, "r") }},
	{"lines", ioLines},
	{"open", ioOpen},
	{"output", func(c *Call) error { return defaultFile(c, outputKey, "w") }},
	{"popen", ioPopen},
	{"read", ioRead},
	{"tmpfile", ioTmpfile},
	{"type", ioType},
	{"write", ioWrite},
}, nil, setupIO)

// fileMethods are what files can do.
var fileMethods = NewLibrary("file", []Reg{
	{"close", fileClose},
	{"flush", fileFlush},
	{"lines", fileLines},
	{"read", fileRead},
	{"seek", fileSeek},
	{"setvbuf", fileSetvbuf},
	{"write", fileWrite},
}, nil, nil)

var fileMetamethods = NewLibrary("file.meta", []Reg{
	{"__gc", fileCollect},
	{"__close", fileCollect},
	{"__tostring", fileTostring},
}, []Const{{"__name", String("FILE*")}}, nil)

// The places in the registry of what the library keeps.
const (
	inputKey    = "_IO_input"
	outputKey   = "_IO_output"
	fileMetaKey = "FILE*"
)

// openFilesKey is where a state keeps its open files.
type openFilesKey struct{}

// openFiles are the files that CloseFiles has to close.
type openFiles map[*stream]struct{}

func setupIO(s *State, lib *Table) error {
	s.registryTable()
	meta := fileMetamethods.template.borrow()
	meta.SetString("__index", fileMethods.template.borrow().Value())
	s.registry.SetString(fileMetaKey, meta.Value())
	stdin := s.newFile(newInputStream(s.stdin()))
	stdout := s.newFile(newOutputStream(s.stdout()))
	s.registry.SetString(inputKey, stdin)
	s.registry.SetString(outputKey, stdout)
	_ = lib.setStr(nil, setupNames["stdin"], stdin)
	_ = lib.setStr(nil, setupNames["stdout"], stdout)
	_ = lib.setStr(nil, setupNames["stderr"], s.newFile(newErrorStream(s.stderr())))
	return nil
}

// newFile makes the value that scripts handle a stream by.
func (s *State) newFile(f *stream) Value {
	meta, _ := s.registry.GetString(fileMetaKey).AsTable()
	v := NewUserdata(f, meta).Value()
	if f.finish != nil {
		files := s.openFiles()
		files[f] = struct{}{}
		finish := f.finish
		f.finish = func(failure error) []Value {
			delete(files, f)
			return finish(failure)
		}
		s.registerFinalizer(v, meta)
	}
	return v
}

// openFiles returns the list of open files, made at the first use.
func (s *State) openFiles() openFiles {
	files, ok := s.Stored(openFilesKey{}).(openFiles)
	if !ok {
		files = openFiles{}
		s.Store(openFilesKey{}, files)
	}
	return files
}

// CloseFiles writes out and closes the files that scripts of s left open, and
// flushes the standard output. It gives the first error.
func (s *State) CloseFiles() error {
	var first error
	files, _ := s.Stored(openFilesKey{}).(openFiles)
	for f := range files {
		if err := f.flush(); err != nil && first == nil {
			first = err
		}
		f.close()
	}
	if w, ok := s.stdout().(interface{ Flush() error }); ok {
		if err := w.Flush(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// checkStream gives the stream of argument i, open or closed.
func (c *Call) checkStream(i int) (*stream, error) {
	if u, ok := c.Arg(i).AsUserdata(); ok {
		if s, ok := u.Data.(*stream); ok {
			return s, nil
		}
	}
	return nil, c.TypeError(i, "FILE*")
}

// checkOpen gives the open stream of argument i.
func (c *Call) checkOpen(i int) (*stream, error) {
	s, err := c.checkStream(i)
	if err == nil && s.closed {
		return nil, c.Errorf("attempt to use a closed file")
	}
	return s, err
}

// defaultStream gives the stream that functions use when given none.
func (c *Call) defaultStream(key string) (*stream, error) {
	u, _ := c.state.registry.GetString(key).AsUserdata()
	s, _ := u.Data.(*stream)
	if s.closed {
		return nil, c.Errorf("default %s file is closed", strings.TrimPrefix(key, "_IO_"))
	}
	return s, nil
}

// openOrRaise opens a file for functions that raise an error when they cannot.
func (c *Call) openOrRaise(name, mode string) (Value, error) {
	s, err := openFile(name, mode)
	if err != nil {
		message, _ := systemError(err)
		return Nil, c.Errorf("cannot open file '%s' (%s)", name, message)
	}
	return c.state.newFile(s), nil
}

// defaultFile gets and maybe sets a default file.
func defaultFile(c *Call, key, mode string) error {
	if v := c.Arg(1); v.isString() || v.isNumber() {
		file, err := c.openOrRaise(v.String(), mode)
		if err != nil {
			return err
		}
		c.state.registry.SetString(key, file)
	} else if !v.IsNil() {
		if _, err := c.checkOpen(1); err != nil {
			return err
		}
		c.state.registry.SetString(key, v)
	}
	return c.Return(c.state.registry.GetString(key))
}

func ioType(c *Call) error {
	if err := c.CheckAny(1); err != nil {
		return err
	}
	s, err := c.checkStream(1)
	switch {
	case err != nil:
		return c.Return(Nil)
	case s.closed:
		return c.Return(String("closed file"))
	}
	return c.Return(String("file"))
}

func ioOpen(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	mode, err := c.OptString(2, "r")
	if err != nil {
		return err
	}
	if !isFileMode(mode) {
		return c.ArgError(2, "invalid mode")
	}
	s, err := openFile(name, mode)
	if err != nil {
		return c.Return(fileResult(err, name)...)
	}
	return c.Return(c.state.newFile(s))
}

// ioTmpfile opens a file that has no name, so that it is gone when closed.
func ioTmpfile(c *Call) error {
	f, err := os.CreateTemp("", "lua_")
	if err != nil {
		return c.Return(fileResult(err, "")...)
	}
	s := newFileStream(f, true, true)
	if err := os.Remove(f.Name()); err != nil { // some systems keep open files
		finish := s.finish
		s.finish = func(failure error) []Value {
			results := finish(failure)
			_ = os.Remove(f.Name())
			return results
		}
	}
	return c.Return(c.state.newFile(s))
}

// ioPopen starts a program. It ends with the context of the call at the
// latest.
func ioPopen(c *Call) error {
	command, err := c.CheckString(1)
	if err != nil {
		return err
	}
	mode, err := c.OptString(2, "r")
	if err != nil {
		return err
	}
	if mode != "r" && mode != "w" {
		return c.ArgError(2, "invalid mode")
	}
	s, err := startProgram(c, command, mode == "r")
	if err != nil {
		return c.Return(fileResult(err, command)...)
	}
	return c.Return(c.state.newFile(s))
}

// startProgram runs a command with a pipe from its output or to its input.
// What goes to the host's writers is handed over when the stream is closed.
func startProgram(c *Call, command string, reads bool) (*stream, error) {
	here, there, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = there.Close() }()
	cmd := shell(c, command)
	out, problems := &bufferedCommand{to: c.state.stdout()}, &bufferedCommand{to: c.state.stderr()}
	cmd.Stdout, cmd.Stderr = out, problems
	if reads {
		cmd.Stdout = there
	} else {
		here, there = there, here
		cmd.Stdin = there
	}
	if err := cmd.Start(); err != nil {
		_ = here.Close()
		return nil, err
	}
	s := newFileStream(here, reads, !reads)
	s.finish = func(error) []Value {
		_ = here.Close()
		err := cmd.Wait()
		_, _ = out.deliver(), problems.deliver()
		return exitResult(cmd, err)
	}
	return s, nil
}

func shell(c *Call, command string) *exec.Cmd {
	cmd := exec.CommandContext(c.Context(), "sh", "-c", command)
	if f, ok := c.state.opts.Stdin.(*os.File); ok {
		cmd.Stdin = f
	}
	return cmd
}

func ioRead(c *Call) error {
	s, err := c.defaultStream(inputKey)
	if err != nil {
		return err
	}
	return readFormats(c, s, c.Args(), 1)
}

func fileRead(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	return readFormats(c, s, c.Args()[1:], 2)
}

func ioWrite(c *Call) error {
	s, err := c.defaultStream(outputKey)
	if err != nil {
		return err
	}
	return writeValues(c, s, c.state.registry.GetString(outputKey), 1)
}

func fileWrite(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	return writeValues(c, s, c.Arg(1), 2)
}

// writeValues writes the arguments from number first on, and returns the file.
func writeValues(c *Call, s *stream, file Value, first int) error {
	var failure error
	for i := first; i <= c.NArgs(); i++ {
		text, err := c.CheckString(i)
		if err != nil {
			return err
		}
		if c.Arg(i).isFloat() {
			text = strings.TrimSuffix(text, ".0") // the reference writes "%.14g"
		}
		if err := c.Step(1 + len(text)/bytesPerStep); err != nil {
			return err
		}
		if err := s.write(text); err != nil && failure == nil {
			failure = err
		}
	}
	if failure != nil {
		return c.Return(fileResult(failure, "")...)
	}
	return c.Return(file)
}

func ioFlush(c *Call) error {
	s, err := c.defaultStream(outputKey)
	if err != nil {
		return err
	}
	return c.Return(fileResult(s.flush(), "")...)
}

func fileFlush(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	return c.Return(fileResult(s.flush(), "")...)
}

func fileSeek(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	whence, err := c.CheckOption(2, "cur", "set", "cur", "end")
	if err != nil {
		return err
	}
	offset, err := c.OptInt(3, 0)
	if err != nil {
		return err
	}
	pos, err := s.seek(offset, []int{io.SeekStart, io.SeekCurrent, io.SeekEnd}[whence])
	if err != nil {
		return c.Return(fileResult(err, "")...)
	}
	return c.Return(Int(pos))
}

func fileSetvbuf(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	mode, err := c.CheckOption(2, "", "no", "full", "line")
	if err != nil {
		return err
	}
	if _, err := c.OptInt(3, 0); err != nil {
		return err
	}
	s.flushes = []flushMode{flushAlways, flushFull, flushLines}[mode]
	return c.Return(fileResult(s.flush(), "")...)
}

func ioClose(c *Call) error {
	if c.NArgs() > 0 {
		return fileClose(c)
	}
	s, err := c.defaultStream(outputKey)
	if err != nil {
		return err
	}
	return c.Return(s.close()...)
}

func fileClose(c *Call) error {
	s, err := c.checkOpen(1)
	if err != nil {
		return err
	}
	return c.Return(s.close()...)
}

// fileCollect closes a file that went out of scope or was collected.
func fileCollect(c *Call) error {
	s, err := c.checkStream(1)
	if err == nil && !s.closed {
		s.close()
	}
	return err
}

func fileTostring(c *Call) error {
	s, err := c.checkStream(1)
	if err != nil {
		return err
	}
	if s.closed {
		return c.Return(String("file (closed)"))
	}
	return c.returnString("file (" + addressText(c.state.identify(c.Arg(1))) + ")")
}

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
