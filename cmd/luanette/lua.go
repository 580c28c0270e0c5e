package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/lua"
)

// luaCommand is `luanette lua`.
type luaCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"-e CODE, or FILE and its arguments; - or nothing reads standard input."`
}

// Help is shown by `luanette lua --help`.
func (luaCommand) Help() string {
	return `It has every library of Lua and no limits. What follows the file is in arg, and is not
read as a flag of luanette.

  luanette lua -e 'print(1 + 1)'
  luanette lua report.lua Ada`
}

// Run runs Lua with its own exit codes.
func (c *luaCommand) Run(proc *process, k *kong.Context) error {
	if len(c.Args) == 1 && (c.Args[0] == "--help" || c.Args[0] == "-h") {
		return k.PrintUsage(false)
	}
	if code := runLua(c.Args, proc.Stdin, proc.Stdout, proc.Stderr); code != exitOK {
		return exitStatus(code)
	}
	return nil
}

// runLua is `luanette lua [-e CODE]… [FILE [ARG…]]`: it runs plain Lua with
// every library and no limits, as the standalone interpreter does, so that both
// can be compared. Without code and file, or with the file "-", the program
// comes from stdin. It returns the exit code.
func runLua(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriterSize(stdout, 1<<16)
	s := lua.New(lua.Options{Stdin: stdin, Stdout: out, Stderr: stderr, BinaryChunks: true})
	err := s.Open(lua.All()...)
	if err == nil {
		err = runLuaArgs(s, args, stdin)
	}
	err = errors.Join(err, s.Close(), s.CloseFiles(), out.Flush())
	if exit := new(lua.ExitError); errors.As(err, &exit) {
		return exit.Code
	}
	if err != nil {
		reportLua(stderr, err)
		return exitFailure
	}
	return exitOK
}

// runLuaArgs runs the pieces of code and then the file the arguments name.
func runLuaArgs(s *lua.State, args []string, stdin io.Reader) error {
	rest, fromStdin := args, true
	for len(rest) >= 2 && rest[0] == "-e" {
		if err := runChunk(s, rest[1], "=(command line)"); err != nil {
			return err
		}
		rest, fromStdin = rest[2:], false
	}
	setLuaArg(s, args, len(args)-len(rest))
	switch {
	case len(rest) == 0 && !fromStdin:
		return nil
	case len(rest) == 0 || rest[0] == "-":
		source, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("read the program: %w", err)
		}
		return runChunk(s, string(source), "=stdin", rest[min(1, len(rest)):]...)
	}
	source, err := os.ReadFile(rest[0])
	if err != nil {
		return err
	}
	return runChunk(s, string(source), "@"+rest[0], rest[1:]...)
}

// setLuaArg fills the global arg: the script at 0, its arguments after it and the
// preceding ones at negative positions.
func setLuaArg(s *lua.State, args []string, script int) {
	t := lua.NewTable(len(args), 1)
	for i, a := range append([]string{"lua"}, args...) {
		t.SetInt(int64(i-script-1), lua.String(a))
	}
	s.Globals().SetString("arg", t.Value())
}

func runChunk(s *lua.State, source, name string, args ...string) error {
	if strings.HasPrefix(source, "#") { // a line for the shell; keep its newline
		source = source[max(0, strings.IndexByte(source, '\n')):]
	}
	f, err := s.Load(source, name)
	if err != nil {
		return err
	}
	vals := make([]lua.Value, len(args))
	for i, a := range args {
		vals[i] = lua.String(a)
	}
	_, err = s.Call(context.Background(), f.Value(), vals...)
	return err
}

// reportLua prints an error the way the standalone interpreter does.
func reportLua(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "lua: %v\n", err)
	if e := new(lua.Error); errors.As(err, &e) && e.Traceback != "" {
		fmt.Fprintln(stderr, e.Traceback)
	}
}
