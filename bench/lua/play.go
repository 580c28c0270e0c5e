package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/luanette/luanette/lua"
	gopherlua "github.com/yuin/gopher-lua"
)

// gcPercent is what `luanette lua` sets for its own process. Both engines
// written in Go get it.
const gcPercent = 400

// play runs a Lua program with the engine of a role.
func play(role, program string) error {
	debug.SetGCPercent(gcPercent)
	switch role {
	case "ours":
		return playOurs(program)
	case "gopher":
		return playGopher(program)
	}
	return fmt.Errorf("no role %q", role)
}

func playOurs(program string) error {
	out := bufio.NewWriter(os.Stdout)
	s, chunk, err := load(program, out)
	if err != nil {
		return err
	}
	_, err = s.Call(context.Background(), chunk.Value())
	return errors.Join(err, out.Flush())
}

// load returns a program ready to be called in a state of its own.
func load(program string, out io.Writer) (*lua.State, *lua.Function, error) {
	source, err := os.ReadFile(program)
	if err != nil {
		return nil, nil, err
	}
	s := lua.New(lua.Options{Stdout: out})
	if err := s.Open(lua.All()...); err != nil {
		return nil, nil, err
	}
	chunk, err := s.Load(string(source), "@"+program)
	return s, chunk, err
}

func playGopher(program string) error {
	s := gopherlua.NewState()
	defer s.Close()
	return s.DoFile(program)
}
