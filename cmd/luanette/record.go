package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/recording"
	"github.com/luanette/luanette/internal/server"
)

// recordCommand is `luanette record`.
type recordCommand struct {
	settingFlags
	languageFlag
	Name    string        `arg:"" complete:"upstream" help:"The upstream's namespace."`
	Tool    string        `arg:"" optional:"" help:"A tool of it to call."`
	Args    []string      `arg:"" optional:"" name:"key=value" help:"The tool's arguments: key=value, or key:=JSON."`
	Output  string        `short:"o" type:"path" placeholder:"FILE" help:"File to add to (default: mock of the upstream, otherwise NAME.mock.json)."`
	Replace bool          `help:"Begin a new file instead of adding to it."`
	Script  []string      `name:"run" type:"path" placeholder:"FILE" help:"Run a script whose calls are recorded; may be repeated."`
	Listen  *string       `short:"l" placeholder:"ADDR" help:"Address for clients whose calls are recorded (default 127.0.0.1:8081)."`
	Wait    time.Duration `default:"30s" help:"How long to wait for the upstream."`
}

// Help is shown by `luanette record --help`.
func (recordCommand) Help() string {
	return `Connects to a tool server of the configuration and writes what it answers to a file:
its lists of tools, resources and prompts, and then the answers to calls. With TOOL it
makes that call, with --run it runs scripts. With neither it serves MCP, as luanette
serve does, and records what clients do until it is stopped.

Secrets are masked. An upstream with mock = "FILE" answers from the file, without the
server; docs/testing.md describes how calls are matched.`
}

// Run records.
func (c *recordCommand) Run(ctx context.Context, proc *process) error {
	file, err := c.prepare(proc)
	if err != nil {
		return err
	}
	c.Change = func(read *config.Config) {
		u := read.Upstreams[c.Name]
		u.Record, u.Mock = file, ""
		read.Upstreams[c.Name] = u
	}
	if err := c.listAll(ctx, proc); err != nil {
		return err
	}
	switch {
	case c.Tool != "":
		err = (&callCommand{clientFlags: c.clientFlags(), Tool: c.Name + "." + c.Tool, Args: c.Args}).Run(ctx, proc)
	case len(c.Script) > 0:
		err = c.runScripts(ctx, proc)
	default:
		fmt.Fprintf(proc.Stderr, "recording %s in %s until the server is stopped\n", c.Name, file)
		err = (&serveCommand{settingFlags: c.settingFlags, Listen: c.Listen}).Run(ctx, proc)
	}
	return errors.Join(err, report(proc, file))
}

// prepare finds the upstream, and returns the absolute path of the file.
func (c *recordCommand) prepare(proc *process) (file string, err error) {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return "", err
	}
	spec, err := configuredSpec(loaded, proc.Env, c.Name)
	if err != nil {
		return "", err
	}
	switch u, own := loaded.Upstreams[c.Name]; {
	case !own:
		return "", fault.New(fault.InvalidParams, "upstream %s belongs to the file of another program", c.Name).
			WithHint("add it to your own configuration with `luanette import`")
	case u.URL == "" && u.Command == "":
		return "", fault.New(fault.InvalidParams, "upstream %s is only a recording", c.Name).
			WithHint("give it the url or command of the real server, too; mock takes precedence over it")
	}
	file = c.Output
	if file == "" {
		file = spec.Mock
	}
	if file == "" {
		file = c.Name + ".mock.json"
	}
	if file, err = filepath.Abs(file); err == nil && c.Replace {
		if err = os.Remove(file); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return file, err
}

func (c *recordCommand) clientFlags() clientFlags {
	return clientFlags{settingFlags: c.settingFlags, Wait: c.Wait}
}

// listAll records what the upstream lists.
func (c *recordCommand) listAll(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: io.Discard, Env: proc.Env, OnDemand: true})
	if err != nil {
		return err
	}
	defer reportWaiting(proc, waitingForConnection(c.Name))()
	connecting, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	return errors.Join(client.ListAll(connecting, srv, c.Name), srv.Close(ctx))
}

// runScripts runs the scripts of --run.
func (c *recordCommand) runScripts(ctx context.Context, proc *process) error {
	for _, script := range c.Script {
		run := runCommand{clientFlags: c.clientFlags(), languageFlag: c.languageFlag, File: script}
		if err := run.Run(ctx, proc); err != nil {
			return err
		}
	}
	return nil
}

// report says what the file has now.
func report(proc *process, file string) error {
	recorded, err := recording.Load(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(proc.Stderr, "%s has %s\n", file, amount(len(recorded.Exchanges), "answer"))
	return nil
}
