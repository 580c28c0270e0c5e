package main

import (
	"context"
	"encoding/json"
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

// startHub runs a hub in front of an upstream.
func startHub(ctx context.Context, far *process, args ...string) (*process, error) {
	door, err := calls.FreeAddress()
	if err != nil {
		return nil, err
	}
	near, err := start(ctx, "hub", append([]string{"-upstream", far.url + "/mcp", "-door", door}, args...)...)
	if err != nil {
		return nil, err
	}
	near.mcp = "http://" + door
	return near, nil
}

func (p *process) usage(ctx context.Context) (usage, error) { return p.ask(ctx, "/usage") }

func (p *process) ask(ctx context.Context, path string) (u usage, err error) {
	answer, err := p.get(ctx, path)
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	return u, json.NewDecoder(answer.Body).Decode(&u)
}

func (p *process) get(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}
