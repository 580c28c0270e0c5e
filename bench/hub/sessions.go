package main

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/bench/calls"
)

// weighed is how many sessions are opened to be weighed.
const weighed = 1000

// weighSessions tells what sessions hold: idle ones, and ones with a stream open.
func weighSessions(ctx context.Context, server *process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	var callers []*calls.Caller
	for range weighed {
		c, err := calls.New(ctx, server.mcp+"/mcp", "legacy")
		if err != nil {
			return err
		}
		c.HTTP.CloseIdleConnections()
		callers = append(callers, c)
	}
	idle, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	for _, c := range callers {
		if err := c.Listen(ctx); err != nil {
			return err
		}
	}
	open, err := server.ask(ctx, "/usage?collect")
	if err != nil {
		return err
	}
	each := func(u usage) string {
		return fmt.Sprintf("%.1f KB heap and %.1f KB stack", float64(u.Heap-before.Heap)/weighed/1000, float64(u.Stacks-min(u.Stacks, before.Stacks))/weighed/1000)
	}
	_, err = fmt.Printf("\n%d sessions: %s each; with an open stream %s each\n", weighed, each(idle), each(open))
	return err
}
