package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

// process is a server that this program started.
type process struct {
	url string
	cmd *exec.Cmd
}

// start runs a program with a free address as its last argument, and waits until it
// answers at path.
func start(ctx context.Context, path, binary string, args ...string) (*process, error) {
	address, err := calls.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + address, cmd: exec.CommandContext(ctx, binary, append(args, address)...)}
	if binary != os.Args[0] {
		p.cmd.Env = append(os.Environ(), "HOME="+os.TempDir())
	}
	p.cmd.Stdout = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
		if err != nil {
			return p, err
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return p, fmt.Errorf("%s %v does not answer", binary, args)
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	done := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer done.Stop()
	_ = p.cmd.Wait() // it was interrupted
}

// cpu is the user and system time that the threads of the process have used.
func (p *process) cpu() (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var used time.Duration
		if _, err := fmt.Sscan(string(text), &used); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += used
	}
	return sum, nil
}
