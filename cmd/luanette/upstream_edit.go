package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// upstreamEditCommand is `luanette upstream edit`.
type upstreamEditCommand struct {
	clientFlags
	upstreamOrgFlag
	settingFlag
	Name     string            `arg:"" complete:"upstream" help:"The upstream's namespace."`
	URL      string            `placeholder:"URL" help:"The new URL."`
	Header   map[string]string `short:"H" mapsep:"none" placeholder:"NAME=VALUE" help:"HTTP headers to send with every request; they replace the current ones."`
	NoHeader bool              `help:"Remove all headers."`
	Expose   []string          `placeholder:"TOOL" help:"Tools that clients see directly; all means every tool, none means no tool."`
	ReadOnly *bool             `negatable:"" help:"Hide tools that are not declared read-only."`
}

// Help is shown by `luanette upstream edit --help`.
func (upstreamEditCommand) Help() string {
	return `Changes a tool server that was added to a running server, on all nodes. Settings
that are not given stay the same. Change a tool server of the configuration file in
that file, which the server watches; this command prints its path.

  luanette upstream edit docs --server http://127.0.0.1:8081 --url https://example.org/v2/mcp
  luanette upstream edit docs --server http://127.0.0.1:8081 --set timeout=90s --set disabled_tools=remove,rename
  luanette upstream edit wiki --org acme --server https://hub.example -H 'X-Key=secret'`
}

// Run changes the upstream on a running server.
func (c *upstreamEditCommand) Run(ctx context.Context, proc *process) error {
	change := map[string]any{}
	for key, value := range upstream.TextChange(c.Set) {
		change[key] = value
	}
	if c.URL != "" {
		change["url"] = c.URL
	}
	if len(c.Header) > 0 || c.NoHeader {
		change["headers"] = c.Header
	}
	if len(c.Expose) > 0 {
		change["expose"] = exposeOf(c.Expose)
	}
	if c.ReadOnly != nil {
		change["read_only"] = *c.ReadOnly
	}
	return c.changeUpstream(ctx, proc, http.MethodPatch, c.upstreamOrgFlag, url.PathEscape(c.Name), change)
}

// upstreamRestoreCommand is `luanette upstream restore`.
type upstreamRestoreCommand struct {
	clientFlags
	upstreamOrgFlag
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Help is shown by `luanette upstream restore --help`.
func (upstreamRestoreCommand) Help() string {
	return `Restores a tool server of the configuration that was removed from a running server, or
one that was disabled. All nodes connect to it again.`
}

// Run restores the upstream on a running server.
func (c *upstreamRestoreCommand) Run(ctx context.Context, proc *process) error {
	return c.changeUpstream(ctx, proc, http.MethodPost, c.upstreamOrgFlag, url.PathEscape(c.Name)+"/restore", nil)
}

// upstreamRestartCommand is `luanette upstream restart`.
type upstreamRestartCommand struct {
	runningFlags
	upstreamOrgFlag
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Help is shown by `luanette upstream restart --help`.
func (upstreamRestartCommand) Help() string {
	return `The running server ends its connection to the upstream, and the upstream's program,
and connects again: with the secrets that its files have now. So do the other nodes on
its database. Calls that run fail if they must not be repeated; others wait.`
}

// Run restarts the upstream.
func (c *upstreamRestartCommand) Run(ctx context.Context, proc *process) error {
	flags, err := c.api(ctx, proc)
	if err != nil {
		return err
	}
	return flags.changeUpstream(ctx, proc, http.MethodPost, c.upstreamOrgFlag, url.PathEscape(c.Name)+"/restart", nil)
}

// changeUpstream asks a running server to change an upstream, and prints the result. The path
// begins with the upstream's name.
func (f *clientFlags) changeUpstream(ctx context.Context, proc *process, method string, of upstreamOrgFlag, path string, body any) error {
	if f.Server == "" {
		return fault.New(fault.InvalidParams, "this command needs a running server").
			WithHint("name it with --server; change upstreams of the configuration file in that file")
	}
	return f.withClient(ctx, proc, func(api client.Client) error {
		if err := of.find(ctx, f.Server, api); err != nil {
			return err
		}
		var u adminapi.Upstream
		raw, err := adminRequest(ctx, api, method, of.path()+"/"+path, body, &u)
		if err != nil {
			return err
		}
		if f.JSON {
			return printJSON(proc.Stdout, raw)
		}
		_, err = fmt.Fprintf(proc.Stdout, "%s: %s\n  %s\n", u.Namespace, u.State, u.Endpoint)
		return err
	})
}
