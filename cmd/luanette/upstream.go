package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
)

// upstreamCommand is `luanette upstream`.
type upstreamCommand struct {
	Add     upstreamAddCommand     `cmd:"" help:"Add a tool server: a URL, or a command after --."`
	Edit    upstreamEditCommand    `cmd:"" help:"Change a tool server that was added to a running server."`
	Remove  upstreamRemoveCommand  `cmd:"" help:"Remove a tool server."`
	Restore upstreamRestoreCommand `cmd:"" help:"Bring back a configured tool server that was removed from a running server."`
	List    upstreamListCommand    `cmd:"" help:"List the tool servers and how they are."`
	Status  upstreamStatusCommand  `cmd:"" help:"Show one tool server."`
	Login   upstreamLoginCommand   `cmd:"" help:"Log in to a tool server that wants it."`
	Logout  upstreamLogoutCommand  `cmd:"" help:"Forget the login to a tool server."`
}

// upstreamAddCommand is `luanette upstream add`.
type upstreamAddCommand struct {
	clientFlags
	Name   string            `arg:"" help:"Its namespace."`
	Target []string          `arg:"" name:"url | command" help:"Where it is, such as https://example.org/mcp; or, after --, the command to start it with."`
	Header map[string]string `short:"H" placeholder:"NAME=VALUE" help:"HTTP header to send with every request."`
	Env    map[string]string `short:"e" placeholder:"NAME=VALUE" help:"Variable for the command."`
	Expose []string          `placeholder:"TOOL" help:"Tools our clients see directly; all for all of them."`
	Trust  string            `placeholder:"open|pin" help:"pin holds its tools until somebody approved them: luanette pin."`
}

// Help is shown by `luanette upstream add --help`.
func (upstreamAddCommand) Help() string {
	return `Without --server the upstream is written into the configuration file, where a
running server finds it at once. With --server it is kept in that server's
database and connected by every node that shares it, also after a restart, until
it is removed; commands cannot be given to a running server.

  luanette upstream add files -- npx @modelcontextprotocol/server-filesystem .
  luanette upstream add docs https://example.org/mcp`
}

// Run adds it to the file, or to a running server.
func (c *upstreamAddCommand) Run(ctx context.Context, world *process) error {
	url, command := "", c.Target
	if len(c.Target) == 1 && strings.Contains(c.Target[0], "://") {
		url, command = c.Target[0], nil
	}
	if c.Server != "" && c.Trust != "" {
		return fault.New(fault.InvalidParams, "--trust is for the configuration file").
			WithHint("omit --server; upstreams added to a running server follow its trust setting")
	}
	if c.Server != "" {
		if len(command) > 0 {
			return fault.New(fault.Denied, "a command cannot be given to a running server").
				WithHint("omit --server: the command goes into the configuration file, which the server watches")
		}
		view, err := c.ask(ctx, world, "mcp_connect", map[string]any{"namespace": c.Name, "url": url, "headers": c.Header})
		if err != nil {
			return err
		}
		return c.print(world, view)
	}
	entry := config.Upstream{URL: url, Headers: c.Header, Env: c.Env, Trust: c.Trust}
	if len(command) > 0 {
		entry.Command, entry.Args = command[0], command[1:]
	}
	switch {
	case len(c.Expose) == 1 && c.Expose[0] == "all":
		entry.Expose = "all"
	case len(c.Expose) > 0:
		entry.Expose = c.Expose
	}
	file, err := config.AddUpstream(config.Sources{File: c.Config, Env: world.Env}, c.Name, entry)
	if err != nil {
		return err
	}
	return c.edited(world, "added %s to %s\n", c.Name, file)
}

// upstreamRemoveCommand is `luanette upstream remove`.
type upstreamRemoveCommand struct {
	clientFlags
	Name string `arg:"" help:"Its namespace."`
}

// Run takes it out of the file, or disconnects it at a running server.
func (c *upstreamRemoveCommand) Run(ctx context.Context, world *process) error {
	if c.Server != "" {
		view, err := c.ask(ctx, world, "mcp_disconnect", map[string]any{"namespace": c.Name})
		if err != nil {
			return err
		}
		return c.print(world, view)
	}
	file, err := config.RemoveUpstream(config.Sources{File: c.Config, Env: world.Env}, c.Name)
	if err != nil {
		return err
	}
	return c.edited(world, "removed %s from %s\n", c.Name, file)
}

// edited says what became of the configuration file.
func (f *clientFlags) edited(world *process, words, name, file string) error {
	if !f.JSON {
		_, err := fmt.Fprintf(world.Stdout, words, name, file)
		return err
	}
	raw, err := json.Marshal(map[string]string{"namespace": name, "file": file})
	if err != nil {
		return err
	}
	return printJSON(world.Stdout, raw)
}

// upstreamListCommand is `luanette upstream list`.
type upstreamListCommand struct{ clientFlags }

// Run shows every upstream in a row of its own.
func (c *upstreamListCommand) Run(ctx context.Context, world *process) error {
	view, err := c.ask(ctx, world, "mcp_list_upstreams", struct{}{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.print(world, view)
	}
	var listed struct {
		Upstreams []struct {
			Namespace, State, Endpoint, Error, Hint string
			Tools                                   int `json:"tool_count"`
			Calls                                   int `json:"call_count"`
			Warnings                                []string
		}
	}
	if err := json.Unmarshal(view.Structured, &listed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of upstreams")
	}
	var rows [][]string
	for _, u := range listed.Upstreams {
		rows = append(rows, []string{u.Namespace, u.State, strconv.Itoa(u.Tools), strconv.Itoa(u.Calls), u.Endpoint, trouble(u.Error, u.Hint, u.Warnings)})
	}
	if len(rows) == 0 {
		fmt.Fprintln(world.Stdout, "no upstreams; add one with `luanette upstream add NAME URL`")
		return nil
	}
	return table(world, strings.Fields("NAME STATE TOOLS CALLS ENDPOINT TROUBLE"), rows)
}

// trouble is what is wrong with an upstream, in a line.
func trouble(problem, hint string, warnings []string) string {
	switch {
	case problem != "" && hint != "":
		return firstLine(problem) + ": " + hint
	case problem+hint != "":
		return firstLine(problem + hint)
	case len(warnings) > 1:
		return fmt.Sprintf("%s (and %d more: luanette upstream status)", warnings[0], len(warnings)-1)
	default:
		return strings.Join(warnings, "")
	}
}

// upstreamStatusCommand is `luanette upstream status`.
type upstreamStatusCommand struct {
	clientFlags
	Name string `arg:"" help:"Its namespace."`
}

// Run shows one upstream in full.
func (c *upstreamStatusCommand) Run(ctx context.Context, world *process) error {
	view, err := c.ask(ctx, world, "mcp_status", map[string]any{"namespace": c.Name})
	if err != nil {
		return err
	}
	return c.print(world, view)
}
