package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

// process is a server that this program started from itself.
type process struct {
	url  string // where it tells what it has spent
	mcp  string // where it is called
	stop func()
}

// start runs the program in a role and waits until it serves.
func start(ctx context.Context, role string, args ...string) (*process, error) {
	address, err := calls.FreeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-role", role, "-listen", address}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{url: "http://" + address, mcp: "http://" + address, stop: func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}}
	for ctx.Err() == nil {
		if _, err := p.usage(ctx); err == nil {
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return p, ctx.Err()
}

func (p *process) usage(ctx context.Context) (usage, error) { return p.ask(ctx, "/usage") }

func (p *process) ask(ctx context.Context, path string) (u usage, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return u, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	return u, json.NewDecoder(answer.Body).Decode(&u)
}

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
