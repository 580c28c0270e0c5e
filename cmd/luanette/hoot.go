package main

import (
	"context"
	"path/filepath"

	"github.com/luanette/luanette/internal/server"
)

// hootCommand is `luanette hoot`.
type hootCommand struct {
	settingFlags
	Listen    string  `short:"l" default:"tcp://127.0.0.1:5580" placeholder:"ENDPOINT" help:"Where front ends connect to (default ${default})."`
	Broadcast string  `placeholder:"ENDPOINT" help:"Where they hear what happens (default: the port after that of --listen)."`
	URL       *string `placeholder:"URL" help:"Where people reach the server in front, for links to artifacts (default: where the settings have it listen)."`
}

// Help is shown by `luanette hoot --help`.
func (hootCommand) Help() string {
	return `The music tools as a process of their own, over ZeroMQ (docs/backends.md). A
server has them in process unless it has an upstream of that name:

  luanette hoot
  luanette upstream add hootenanny zmq+tcp://127.0.0.1:5580

What it keeps is in the folder hoot of the data folder, or in that of --data; the
server in front fetches it from here when somebody asks for it.`
}

// Run serves until the context ends.
func (c *hootCommand) Run(ctx context.Context, world *process) error {
	given := map[string]*string{"hoot.url": c.URL}
	loaded, err := c.load(world, given)
	if err != nil {
		return err
	}
	if c.Data == nil { // the server's own folder has its own jobs
		own := filepath.Join(loaded.Data, "hoot")
		given["data"] = &own
		if loaded, err = c.load(world, given); err != nil {
			return err
		}
	}
	srv, err := server.BuildMusic(ctx, loaded, server.Options{Version: version, Stderr: world.Stderr, Env: world.Env, Jobs: true})
	if err != nil {
		return err
	}
	return srv.ServeMusic(ctx, c.Listen, c.Broadcast)
}
