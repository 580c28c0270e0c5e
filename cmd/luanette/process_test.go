package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// program returns a command that runs luanette in a folder. It has the variables HOME and
// PATH, and those in env.
func program(ctx context.Context, folder string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "luanette", args...)
	cmd.Dir = folder
	cmd.Env = append([]string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

// startServing starts `luanette serve` and waits until it listens. When the process closes
// its standard error, the channel gets all of it and is closed.
func startServing(cmd *exec.Cmd) (url string, output <-chan string, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), "is listening on "); ok {
			rest := make(chan string, 1)
			go func() {
				defer close(rest)
				for lines.Scan() {
					fmt.Fprintln(&log, lines.Text())
				}
				rest <- log.String()
			}()
			return url, rest, nil
		}
	}
	return "", nil, fmt.Errorf("the server ended before it listened: %w\n%s", cmd.Wait(), &log)
}
