package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/attach"
)

// reloadCommand is `luanette reload`.
type reloadCommand struct {
	settingFlags
}

// Help is shown by `luanette reload --help`.
func (reloadCommand) Help() string {
	return `The server that runs on the data folder reads its configuration file again, and the
files that it imports. Changed upstreams reconnect, and upstreams that users removed
come back. After a mistake in the file nothing changes.`
}

// Run has the server reload, and prints what takes effect only after a restart.
func (c *reloadCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	running, err := attach.Find(ctx, placeOf(loaded, proc.Env), false)
	if other := (*attach.OtherError)(nil); errors.As(err, &other) {
		return fault.Wrap(fault.NotFound, err, "reload").WithHint("name its file with --config")
	}
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "reload").WithHint("name its folder with --data; `luanette serve` starts a server")
	}
	waiting, err := running.Reload(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(proc.Stdout, "reloaded the configuration of the server with pid %d\n", running.PID)
	if len(waiting) > 0 {
		fmt.Fprintf(proc.Stdout, "restart needed for %s\n", strings.Join(waiting, ", "))
	}
	return nil
}
