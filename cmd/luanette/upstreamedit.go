package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// upstreamEditCommand is `luanette upstream edit`.
type upstreamEditCommand struct {
	clientFlags
	Name     string            `arg:"" help:"Its namespace."`
	URL      string            `placeholder:"URL" help:"Where it is from now on."`
	Header   map[string]string `short:"H" placeholder:"NAME=VALUE" help:"HTTP headers to send with every request, instead of those until now."`
	NoHeader bool              `help:"Send no headers any more."`
	Expose   []string          `placeholder:"TOOL" help:"Tools our clients see directly; all for all of them, none for none."`
	ReadOnly *bool             `negatable:"" help:"Hide tools that do not say that they only read."`
}

// Help is shown by `luanette upstream edit --help`.
func (upstreamEditCommand) Help() string {
	return `Changes a tool server that was added to a running server, on all nodes; what is
not named stays. One that a configuration file has is changed in that file, which
the server watches: this command says where it is.

  luanette upstream edit docs --server http://127.0.0.1:8081 --url https://example.org/v2/mcp`
}

// Run changes it at a running server.
func (c *upstreamEditCommand) Run(ctx context.Context, world *process) error {
	var change adminapi.UpstreamChange
	if c.URL != "" {
		change.URL = &c.URL
	}
	if len(c.Header) > 0 || c.NoHeader {
		headers := map[string]*string{}
		for name, value := range c.Header {
			headers[name] = &value
		}
		change.Headers = &headers
	}
	switch {
	case len(c.Expose) == 1 && c.Expose[0] == "all":
		change.Expose = &adminapi.Expose{All: true}
	case len(c.Expose) == 1 && c.Expose[0] == "none":
		change.Expose = &adminapi.Expose{}
	case len(c.Expose) > 0:
		change.Expose = &adminapi.Expose{Names: c.Expose}
	}
	change.ReadOnly = c.ReadOnly
	return c.manage(ctx, world, http.MethodPatch, c.Name, "", change)
}

// upstreamRestoreCommand is `luanette upstream restore`.
type upstreamRestoreCommand struct {
	clientFlags
	Name string `arg:"" help:"Its namespace."`
}

// Help is shown by `luanette upstream restore --help`.
func (upstreamRestoreCommand) Help() string {
	return `For a tool server that the configuration has and that was removed from a running
server: it is connected again, on all nodes.`
}

// Run brings it back at a running server.
func (c *upstreamRestoreCommand) Run(ctx context.Context, world *process) error {
	return c.manage(ctx, world, http.MethodPost, c.Name, "/restore", nil)
}

// manage asks a running server to change an upstream, and shows it.
func (f *clientFlags) manage(ctx context.Context, world *process, method, name, verb string, body any) error {
	if f.Server == "" {
		return fault.New(fault.InvalidParams, "this is for a running server").
			WithHint("name it with --server or LUANETTE_SERVER; what the configuration file has is changed there")
	}
	var u adminapi.Upstream
	raw, err := f.admin(ctx, world, method, "/api/v1/upstreams/"+url.PathEscape(name)+verb, body, &u)
	if err != nil {
		return err
	}
	if f.JSON {
		return printJSON(world.Stdout, raw)
	}
	_, err = fmt.Fprintf(world.Stdout, "%s: %s\n  %s\n", u.Namespace, u.State, u.Endpoint)
	return err
}
