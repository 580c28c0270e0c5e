package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
)

// upstreamCommand is `luanette upstream`.
type upstreamCommand struct {
	Add     upstreamAddCommand     `cmd:"" help:"Add a tool server: a URL, or a command after --."`
	Test    upstreamTestCommand    `cmd:"" help:"Connect to a tool server and show its tools, or what is wrong."`
	Edit    upstreamEditCommand    `cmd:"" help:"Change a tool server that was added to a running server."`
	Remove  upstreamRemoveCommand  `cmd:"" help:"Remove a tool server."`
	Restore upstreamRestoreCommand `cmd:"" help:"Bring back a configured tool server that was removed from a running server."`
	Restart upstreamRestartCommand `cmd:"" help:"Connect a tool server anew, and start its program again, on all nodes."`
	List    upstreamListCommand    `cmd:"" help:"List the tool servers and their states."`
	Status  upstreamStatusCommand  `cmd:"" help:"Show one tool server."`
	Explain upstreamExplainCommand `cmd:"" help:"Show what a tool server's sandbox refused, and what would allow it."`

	Outdated upstreamOutdatedCommand `cmd:"" help:"Show which installed packages of tool servers have newer versions."`
	Upgrade  upstreamUpgradeCommand  `cmd:"" help:"Install newer packages of tool servers, after showing what changes."`
	Rollback upstreamRollbackCommand `cmd:"" help:"Go back to the version before the last upgrade."`
	Verify   upstreamVerifyCommand   `cmd:"" help:"Check the signatures and the provenance of installed packages."`
	Freeze   upstreamFreezeCommand   `cmd:"" help:"Print the installed packages with their versions, for other machines."`
	Thaw     upstreamThawCommand     `cmd:"" help:"Install exactly the packages that freeze has printed."`
	Prune    upstreamPruneCommand    `cmd:"" help:"Remove installed packages that no tool server uses."`

	Trace  upstreamTraceCommand  `cmd:"" help:"Find the smallest sandbox that a tool server works in."`
	Login  upstreamLoginCommand  `cmd:"" help:"Log in to a tool server that requires it."`
	Logout upstreamLogoutCommand `cmd:"" help:"Remove the stored login to a tool server."`
}

// upstreamRemoveCommand is `luanette upstream remove`.
type upstreamRemoveCommand struct {
	clientFlags
	upstreamOrgFlag
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Run removes the upstream from the file, or from a running server.
func (c *upstreamRemoveCommand) Run(ctx context.Context, proc *process) error {
	if err := c.checkServer(&c.clientFlags); err != nil {
		return err
	}
	if c.Server != "" {
		view, err := c.call(ctx, proc, "mcp_disconnect", map[string]any{"namespace": principal.InOrg(c.Name, c.Org)})
		if err != nil {
			return err
		}
		if removed, _ := rawjson.Get(view.Structured, "removed"); string(removed) == "false" {
			return fault.New(fault.NotFound, "the server has no upstream %q", c.Name).WithHint("`luanette upstream list --server %s` shows them all", c.Server)
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
type upstreamListCommand struct {
	clientFlags
	upstreamOrgFlag
}

// Run lists the upstreams, one per row.
func (c *upstreamListCommand) Run(ctx context.Context, proc *process) error {
	if c.Org != "" {
		return c.listOfOrg(ctx, proc)
	}
	view, err := c.call(ctx, proc, "mcp_list_upstreams", struct{}{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.print(proc, view)
	}
	var listed struct {
		Upstreams []servertools.UpstreamView
		Warnings  []string
	}
	if err := json.Unmarshal(view.Structured, &listed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of upstreams")
	}
	for _, warning := range listed.Warnings {
		fmt.Fprintf(proc.Stderr, "warning: %s\n", warning)
	}
	return printUpstreams(proc, listed.Upstreams, "no upstreams; add one with `luanette upstream add NAME URL`, or `luanette import` those of your other clients")
}

// listOfOrg lists the upstreams that were added for an organisation.
func (c *upstreamListCommand) listOfOrg(ctx context.Context, proc *process) error {
	if err := c.checkServer(&c.clientFlags); err != nil {
		return err
	}
	var listed struct{ Upstreams []servertools.UpstreamView }
	raw, err := c.admin(ctx, proc, http.MethodGet, c.path(), nil, &listed)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	return printUpstreams(proc, listed.Upstreams, c.Org+" has added no upstreams; add one with `luanette upstream add NAME URL --org "+c.Org+"`")
}

// printUpstreams prints upstreams as a table, or what is said if there are none.
func printUpstreams(proc *process, list []servertools.UpstreamView, none string) error {
	return printList(proc, list, none, "NAME STATE TOOLS CALLS ENDPOINT PROBLEM", func(u servertools.UpstreamView) []string {
		return []string{u.Namespace, upstreamState(u), strconv.Itoa(u.Tools), strconv.Itoa(u.CallCount), u.Endpoint, upstreamProblem(u)}
	})
}

// upstreamState is the state, with the time that a start takes already.
func upstreamState(u servertools.UpstreamView) string {
	if u.Starting > 0 {
		return fmt.Sprintf("%s %d s", u.State, u.Starting)
	}
	return u.State
}

// upstreamProblem is what is wrong with the upstream, or keeps its start, as one line.
func upstreamProblem(u servertools.UpstreamView) string {
	switch text := cmp.Or(firstLine(u.Error), u.LastLine); {
	case text != "" && u.Hint != "":
		return text + ": " + u.Hint
	case text+u.Hint != "":
		return text + u.Hint
	case len(u.Warnings) > 1:
		return fmt.Sprintf("%s (and %d more: luanette upstream status)", u.Warnings[0], len(u.Warnings)-1)
	default:
		return strings.Join(u.Warnings, "")
	}
}

// upstreamStatusCommand is `luanette upstream status`.
type upstreamStatusCommand struct {
	clientFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Run shows one upstream.
func (c *upstreamStatusCommand) Run(ctx context.Context, proc *process) error {
	view, err := c.call(ctx, proc, "mcp_status", map[string]any{"namespace": c.Name})
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

// upstreamOrgFlag names the organisation whose own upstreams a command is about.
type upstreamOrgFlag struct {
	Org string `placeholder:"ORG" help:"The organisation that has it for itself; with --server."`
}

// checkServer refuses an organisation without a running server.
func (f *upstreamOrgFlag) checkServer(c *clientFlags) error {
	if f.Org == "" || c.Server != "" {
		return nil
	}
	return fault.New(fault.InvalidParams, "--org is for a running server").
		WithHint("name it with --server; in luanette.toml they are [orgs.%s.upstreams.NAME]", f.Org)
}

// find sets the organisation to that of the caller, unless one was given. The owner, who uses the
// socket, has none.
func (f *upstreamOrgFlag) find(ctx context.Context, server string, api client.Client) error {
	if f.Org != "" || strings.HasPrefix(server, serverapi.SocketScheme) {
		return nil
	}
	var me httpauth.Me
	if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/me", nil, &me); err != nil {
		return err
	}
	f.Org = me.Org
	return nil
}

// path is where the API has these upstreams.
func (f *upstreamOrgFlag) path() string {
	if f.Org == "" {
		return "/api/v1/upstreams"
	}
	return "/api/v1/orgs/" + url.PathEscape(f.Org) + "/upstreams"
}
