package main

import (
	"context"
	"path/filepath"

	"github.com/luanette/luanette/internal/server"
)

// hootCommand is `luanette hoot`.
type hootCommand struct {
	settingFlags
	Listen    string  `short:"l" default:"tcp://127.0.0.1:5580" placeholder:"ENDPOINT" help:"Address that front ends connect to (default ${default})."`
	Broadcast string  `placeholder:"ENDPOINT" help:"Address that events are published on (default: the port after that of --listen)."`
	URL       *string `placeholder:"URL" help:"Public URL of the server that uses this backend, for links to artifacts (default: the address in the configuration)."`
}

// Help is shown by `luanette hoot --help`.
func (hootCommand) Help() string {
	return `Runs the music tools as a separate process, over ZeroMQ (docs/backends.md). A
server runs them in its own process unless it has an upstream named hootenanny:

  luanette hoot
  luanette upstream add hootenanny zmq+tcp://127.0.0.1:5580

Artifacts are stored in the folder hoot of the data folder, or in the folder of
--data. The server that uses this backend fetches them on request.`
}

// Run serves until the context ends.
func (c *hootCommand) Run(ctx context.Context, proc *process) error {
	given := map[string]*string{"music.url": c.URL}
	loaded, err := c.load(proc, given)
	if err != nil {
		return err
	}
	if c.Data == nil { // the server's own folder stores the server's jobs
		own := filepath.Join(loaded.Data, "hoot")
		given["data"] = &own
		if loaded, err = c.load(proc, given); err != nil {
			return err
		}
	}
	srv, err := server.BuildMusic(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true})
	if err != nil {
		return err
	}
	return srv.ServeMusic(ctx, c.Listen, c.Broadcast)
}
