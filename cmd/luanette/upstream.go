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
	List    upstreamListCommand    `cmd:"" help:"List the tool servers and their states."`
	Status  upstreamStatusCommand  `cmd:"" help:"Show one tool server."`
	Login   upstreamLoginCommand   `cmd:"" help:"Log in to a tool server that requires it."`
	Logout  upstreamLogoutCommand  `cmd:"" help:"Remove the stored login to a tool server."`
}

// upstreamAddCommand is `luanette upstream add`.
type upstreamAddCommand struct {
	clientFlags
	Name   string            `arg:"" help:"The upstream's namespace."`
	Target []string          `arg:"" name:"url | command" help:"The URL, such as https://example.org/mcp; or, after --, the command that starts the server."`
	Header map[string]string `short:"H" placeholder:"NAME=VALUE" help:"HTTP header to send with every request."`
	Env    map[string]string `short:"e" placeholder:"NAME=VALUE" help:"Environment variable for the command."`
	Expose []string          `placeholder:"TOOL" help:"Tools that clients see directly; all means every tool."`
	Trust  string            `placeholder:"open|pin" help:"pin withholds its tools until they are approved with luanette pin."`
}

// Help is shown by `luanette upstream add --help`.
func (upstreamAddCommand) Help() string {
	return `Without --server the upstream is added to the configuration file, which a running
server watches. With --server it is stored in that server's database, and every
node on that database connects to it, also after a restart, until it is removed.
Upstreams with a command cannot be added to a running server.

  luanette upstream add files -- npx @modelcontextprotocol/server-filesystem .
  luanette upstream add docs https://example.org/mcp`
}

// Run adds the upstream to the file, or to a running server.
func (c *upstreamAddCommand) Run(ctx context.Context, proc *process) error {
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
			return fault.New(fault.Denied, "an upstream with a command cannot be added to a running server").
				WithHint("omit --server: the command goes into the configuration file, which the server watches")
		}
		view, err := c.call(ctx, proc, "mcp_connect", map[string]any{"namespace": c.Name, "url": url, "headers": c.Header})
		if err != nil {
			return err
		}
		return c.print(proc, view)
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
	file, err := config.AddUpstream(config.Sources{File: c.Config, Env: proc.Env}, c.Name, entry)
	if err != nil {
		return err
	}
	return c.printEdited(proc, "added %s to %s\n", c.Name, file)
}

// upstreamRemoveCommand is `luanette upstream remove`.
type upstreamRemoveCommand struct {
	clientFlags
	Name string `arg:"" help:"The upstream's namespace."`
}

// Run removes the upstream from the file, or from a running server.
func (c *upstreamRemoveCommand) Run(ctx context.Context, proc *process) error {
	if c.Server != "" {
		view, err := c.call(ctx, proc, "mcp_disconnect", map[string]any{"namespace": c.Name})
		if err != nil {
			return err
		}
		return c.print(proc, view)
	}
	file, err := config.RemoveUpstream(config.Sources{File: c.Config, Env: proc.Env}, c.Name)
	if err != nil {
		return err
	}
	return c.printEdited(proc, "removed %s from %s\n", c.Name, file)
}

// printEdited prints how the configuration file was changed.
func (f *clientFlags) printEdited(proc *process, words, name, file string) error {
	if !f.JSON {
		_, err := fmt.Fprintf(proc.Stdout, words, name, file)
		return err
	}
	return printValue(proc, map[string]string{"namespace": name, "file": file})
}

// upstreamListCommand is `luanette upstream list`.
type upstreamListCommand struct{ clientFlags }

// Run lists the upstreams, one per row.
func (c *upstreamListCommand) Run(ctx context.Context, proc *process) error {
	view, err := c.call(ctx, proc, "mcp_list_upstreams", struct{}{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.print(proc, view)
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
		rows = append(rows, []string{u.Namespace, u.State, strconv.Itoa(u.Tools), strconv.Itoa(u.Calls), u.Endpoint, problemOf(u.Error, u.Hint, u.Warnings)})
	}
	if len(rows) == 0 {
		fmt.Fprintln(proc.Stdout, "no upstreams; add one with `luanette upstream add NAME URL`")
		return nil
	}
	return table(proc, strings.Fields("NAME STATE TOOLS CALLS ENDPOINT PROBLEM"), rows)
}

// problemOf returns the problem of an upstream, as one line.
func problemOf(problem, hint string, warnings []string) string {
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
	Name string `arg:"" help:"The upstream's namespace."`
}

// Run shows one upstream.
func (c *upstreamStatusCommand) Run(ctx context.Context, proc *process) error {
	view, err := c.call(ctx, proc, "mcp_status", map[string]any{"namespace": c.Name})
	if err != nil {
		return err
	}
	return c.print(proc, view)
}
