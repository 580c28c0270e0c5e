package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

// profile writes what the server's processor time is spent on to a file, and what it
// allocates to another beside it.
func (w way) profile(ctx context.Context, clients int, length time.Duration, file string) error {
	loaded := make(chan error, 1)
	go func() {
		_, err := calls.Many(ctx, w.server.mcp+w.path, w.era, clients, length+time.Second)
		loaded <- err
	}()
	err := w.server.save(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(length.Seconds()))), file)
	return errors.Join(err, <-loaded, w.server.save(ctx, "/debug/pprof/allocs", file+".allocs"))
}

// save writes what the server answers at a path to a file.
func (p *process) save(ctx context.Context, path, file string) error {
	answer, err := p.get(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
