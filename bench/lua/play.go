package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

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
		return playOurs(context.Background(), program, lua.Budget{})
	case "budgeted":
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		limits := lua.Budget{Steps: 1 << 40, Memory: 1 << 30, Deadline: time.Now().Add(time.Hour)}
		return playOurs(ctx, program, limits)
	case "gopher":
		return playGopher(program)
	}
	return fmt.Errorf("no role %q", role)
}

func playOurs(ctx context.Context, program string, limits lua.Budget) error {
	source, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	s := lua.New(lua.Options{Stdout: out})
	if err := s.Open(lua.All()...); err != nil {
		return err
	}
	s.SetBudget(limits)
	chunk, err := s.Load(string(source), "@"+program)
	if err != nil {
		return err
	}
	_, err = s.Call(ctx, chunk.Value())
	return errors.Join(err, out.Flush())
}

func playGopher(program string) error {
	s := gopherlua.NewState()
	defer s.Close()
	return s.DoFile(program)
}
