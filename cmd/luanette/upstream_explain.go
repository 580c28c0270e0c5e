package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// upstreamExplainCommand is `luanette upstream explain`.
type upstreamExplainCommand struct {
	clientFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace, or commands.NAME for a tool of [tools]."`
}

// Help is shown by `luanette upstream explain --help`.
func (upstreamExplainCommand) Help() string {
	return `Shows what the sandbox of a tool server refused in its last run, and the line of
its table in the configuration that would allow it. Whether it should be allowed
is for you to decide: most servers work without what they try. With --server it
asks a running server.`
}

// Run prints the refusals of the last run.
func (c *upstreamExplainCommand) Run(ctx context.Context, proc *process) error {
	refusals, err := c.refusals(ctx, proc)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, append([]profile.Refusal{}, refusals...))
	}
	if len(refusals) == 0 {
		fmt.Fprintf(proc.Stdout, "%s was refused nothing in its last run\n", c.Name)
		return nil
	}
	for _, r := range refusals {
		fmt.Fprintf(proc.Stdout, "%s  %s\n", r.Time.Format("2006-01-02 15:04:05"), plainText(r.String()))
		if r.Allow == "" {
			fmt.Fprintf(proc.Stdout, "    no line allows it but sandbox = \"off\"\n")
			continue
		}
		fmt.Fprintf(proc.Stdout, "    to allow it, in [%s]: %s\n", tableOf(c.Name), plainText(r.Allow))
	}
	return nil
}

// refusals asks the server, or reads what the last run has left here.
func (c *upstreamExplainCommand) refusals(ctx context.Context, proc *process) ([]profile.Refusal, error) {
	if c.Server != "" {
		var list adminapi.UpstreamRefusals
		_, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/upstreams/"+url.PathEscape(c.Name)+"/refusals", nil, &list)
		return list.Refusals, err
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return nil, err
	}
	refusals, err := loaded.Launcher(proc.Env).Refusals(c.Name)
	if len(refusals) == 0 && err == nil && !strings.HasPrefix(c.Name, commandPrefix) {
		_, err = configuredSpec(loaded, proc.Env, c.Name) // perhaps the name is wrong
	}
	return refusals, err
}

// tableOf is the table of the configuration that a program is in.
func tableOf(name string) string {
	if tool, is := strings.CutPrefix(name, commandPrefix); is {
		return "tools." + tool
	}
	return "upstreams." + name
}

// commandPrefix begins the names of programs that are tools of [tools].
const commandPrefix = "commands."
