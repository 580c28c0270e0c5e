package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// upstreamAddCommand is `luanette upstream add`.
type upstreamAddCommand struct {
	clientFlags
	upstreamOrgFlag
	probeFlags
	settingFlag
	Name    string            `arg:"" help:"The upstream's namespace."`
	Target  []string          `arg:"" optional:"" name:"url | command" help:"The URL, such as https://example.org/mcp; or, after --, the command that starts the server."`
	Header  map[string]string `short:"H" mapsep:"none" placeholder:"NAME=VALUE" help:"HTTP header to send with every request."`
	Env     map[string]string `short:"e" mapsep:"none" placeholder:"NAME=VALUE" help:"Environment variable for the command."`
	OpenAPI string            `name:"openapi" placeholder:"FILE|URL" help:"It is an API: the file or URL of its OpenAPI or Swagger document."`
	GraphQL string            `name:"graphql" placeholder:"URL" help:"It is a GraphQL service at this URL."`
	GRPC    string            `name:"grpc" placeholder:"HOST:PORT" help:"It is a gRPC service. https:// or http:// in front chooses TLS or none; without, only this machine has none."`
	Schema  string            `placeholder:"FILE" help:"Schema of a GraphQL service, or descriptor set of a gRPC service, that does not tell it."`
	BaseURL string            `name:"base-url" placeholder:"URL" help:"Where the API is, if its document does not say it."`
	Include []string          `placeholder:"SELECTOR" help:"Operations of the API that become tools: tag:NAME, path:PATTERN, method:NAME or operation:PATTERN."`
	Expose  []string          `placeholder:"TOOL" help:"Tools that clients see directly; all means every tool."`
	Trust   string            `placeholder:"open|pin" help:"pin withholds its tools until they are approved with luanette pin."`
	Sandbox string            `placeholder:"LEVEL" help:"What the command may reach: off, open (the default for new servers), strict, docker:IMAGE or podman:IMAGE; docs/sandbox.md."`
	Read    []string          `placeholder:"FOLDER" help:"Folders that the sandboxed command may read."`
	Write   []string          `placeholder:"FOLDER" help:"Folders that the sandboxed command may write to."`
	Network []string          `placeholder:"HOST:PORT" help:"Hosts that a command in a strict sandbox may connect to."`
	Force   bool              `help:"Add it even if it cannot be connected to."`
	Replace bool              `help:"Replace the upstream of that name, if there is one."`
}

// Help is shown by `luanette upstream add --help`.
func (upstreamAddCommand) Help() string {
	return `Connects to the server and adds it if that works. --force adds it anyway, and
--timeout 0 adds it without connecting.

Without --server the upstream is added to the configuration file, which a running
server watches. With --server it is stored in that server's database, and every
node on that database connects to it, also after a restart, until it is removed.
Upstreams with a command cannot be added to a running server. Administrators of an
organisation add servers with https at public addresses, for the organisation alone.

A command runs in a sandbox: it reads everything but credentials, and writes only to
its own folders and those that its arguments and variables name. --sandbox strict
limits more, --sandbox off nothing.

  luanette upstream add files -- npx @modelcontextprotocol/server-filesystem .
  luanette upstream add docs https://example.org/mcp
  luanette upstream add pets --openapi https://pets.example.org/openapi.json -H 'X-Key=${env:PETS_KEY}'
  luanette upstream add shop --graphql https://shop.example.org/graphql -H 'Authorization=Bearer ${env:SHOP_TOKEN}'
  luanette upstream add orders --grpc orders.example.org:443
  luanette upstream add wiki https://wiki.example/mcp --set timeout=90s --set trust=pin
  luanette upstream add github -e 'GITHUB_TOKEN=${keyring:github/token}' -- npx @modelcontextprotocol/server-github`
}

// Run adds the upstream to the file, or to a running server.
func (c *upstreamAddCommand) Run(ctx context.Context, proc *process) error {
	if upstreamset.IsPrivate(c.Name) {
		return fault.New(fault.InvalidParams, "upstream name %q: names that begin with own- are reserved", c.Name).WithHint("choose another name")
	}
	if err := c.checkAPI(); err != nil {
		return err
	}
	url, command, err := c.target(proc)
	if err == nil {
		err = c.checkServer(&c.clientFlags)
	}
	if err != nil {
		return err
	}
	if c.Server != "" {
		return c.addToServer(ctx, proc, url, command)
	}
	entry, _, err := upstream.TextChange(c.Set).Apply(c.entry(url, command), nil)
	if err != nil {
		return err
	}
	return c.addToFile(ctx, proc, entry)
}

// api is the address of an API, and its kind; empty for a server.
func (c *upstreamAddCommand) api() (kind, address string, count int) {
	for _, given := range []struct{ kind, address string }{{api.OpenAPI, c.OpenAPI}, {api.GraphQL, c.GraphQL}, {api.GRPC, c.GRPC}} {
		if given.address != "" {
			kind, address = given.kind, given.address
			count++
		}
	}
	return kind, address, count
}

// checkAPI checks that the upstream is either an API or a server, and finds its files.
func (c *upstreamAddCommand) checkAPI() (err error) {
	kind, _, count := c.api()
	switch {
	case count == 0 && len(c.Target) == 0:
		return fault.New(fault.InvalidParams, "neither a URL nor a command").
			WithHint("give the URL of a server, a command after --, or an API with --openapi, --graphql or --grpc")
	case count > 1:
		return fault.New(fault.InvalidParams, "more than one API").WithHint("give one of --openapi, --graphql and --grpc")
	case count > 0 && len(c.Target) > 0:
		return fault.New(fault.InvalidParams, "both an API and a server").WithHint("omit %s", strings.Join(c.Target, " "))
	case count == 0 && (c.BaseURL != "" || c.Schema != "" || len(c.Include) > 0):
		return fault.New(fault.InvalidParams, "--base-url, --schema and --include are for APIs").WithHint("add --openapi, --graphql or --grpc")
	case kind == api.OpenAPI && !api.IsURL(c.OpenAPI):
		c.OpenAPI, err = filepath.Abs(c.OpenAPI)
	case c.Schema != "":
		c.Schema, err = filepath.Abs(c.Schema)
	}
	return err
}

// target reads the URL or the command.
func (c *upstreamAddCommand) target(proc *process) (url string, command []string, err error) {
	if len(c.Target) != 1 {
		return "", c.Target, nil
	}
	only := c.Target[0]
	if strings.Contains(only, "://") {
		return only, nil, nil
	}
	if _, err := exec.LookPath(only); err == nil {
		return "", c.Target, nil
	}
	if words := strings.Fields(only); len(words) > 1 {
		return "", nil, fault.New(fault.InvalidParams, "there is no program %q", only).
			WithHint("write the command as separate words: luanette upstream add %s -- %s", c.Name, only)
	}
	if guess := urlOf(only); guess != "" {
		url, err = c.confirmURL(proc, only, guess)
		return url, nil, err
	}
	return "", c.Target, nil
}

// urlOf returns the URL that a text without a scheme probably means, or "".
func urlOf(text string) string {
	host, _, _ := strings.Cut(text, "/")
	name, _, hasPort := strings.Cut(host, ":")
	switch {
	case name == "" || strings.HasPrefix(text, ".") || strings.Contains(text, "\\"):
		return "" // a path
	case netguard.IsLoopback(name) || name == "localhost":
		return "http://" + text
	case hasPort || strings.Contains(name, "."):
		return "https://" + text
	}
	return ""
}

// confirmURL asks whether the person means a URL, or says what to type.
func (c *upstreamAddCommand) confirmURL(proc *process, typed, url string) (string, error) {
	refused := fault.New(fault.InvalidParams, "%s is neither a URL with a scheme nor a program", typed).
		WithHint("if it is a server, type: luanette upstream add %s %s", c.Name, url)
	file, ok := proc.Stdin.(*os.File)
	if !ok || !isTerminal(file) || terminalWidth(proc.Stderr) == 0 {
		return "", refused
	}
	fmt.Fprintf(proc.Stderr, "%s has no scheme. Connect to %s? [Y/n] ", typed, url)
	line, err := bufio.NewReader(file).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		if err == nil {
			return url, nil
		}
	}
	return "", refused
}

// hasAPISettings reports whether there is more than the address of an API.
func (c *upstreamAddCommand) hasAPISettings() bool {
	return c.BaseURL != "" || c.Schema != "" || len(c.Include) > 0
}

// entry returns the upstream as the file has it.
func (c *upstreamAddCommand) entry(url string, command []string) config.Upstream {
	entry := config.Upstream{URL: url, OpenAPI: c.OpenAPI, GraphQL: c.GraphQL, GRPC: c.GRPC, Headers: c.Header, Env: c.Env, Trust: c.Trust, Sandbox: c.Sandbox, Network: c.Network}
	entry.Read, entry.Write = config.AbsoluteFolders(c.Read), config.AbsoluteFolders(c.Write)
	entry.API.BaseURL, entry.API.SchemaFile, entry.API.Include = c.BaseURL, c.Schema, c.Include
	if len(command) > 0 {
		entry.Command, entry.Args = command[0], command[1:]
	}
	entry.Expose = exposeOf(c.Expose)
	return entry
}

// exposeOf reads the flag --expose: all, none, or names of tools.
func exposeOf(given []string) (e upstream.Expose) {
	if len(given) != 1 || e.UnmarshalText([]byte(given[0])) != nil {
		return given
	}
	return e
}

// added is what `luanette upstream add --json` prints.
type added struct {
	client.Probe
	File string `json:"file,omitempty"`
	// Notes say what its sandbox means.
	Notes []string `json:"notes,omitempty"`
}

// addToFile connects to the upstream and adds it to the configuration file.
func (c *upstreamAddCommand) addToFile(ctx context.Context, proc *process, entry config.Upstream) error {
	sources := config.Sources{File: c.Config, Env: proc.Env}
	wanted := config.NewUpstream{Name: c.Name, Entry: entry, Replace: c.Replace, Propose: true}
	loaded, err := wanted.Check(sources)
	if err != nil {
		return err
	}
	probe := client.Probe{Namespace: c.Name, State: "not tested"}
	if c.Timeout > 0 {
		if probe, err = c.probe(ctx, proc, loaded, c.Name); err != nil {
			return err
		}
		if !probe.Works() && !c.Force {
			return problem(probe, "not added").WithHint("%s", addHint(probe))
		}
	}
	file, err := config.AddUpstream(ctx, sources, wanted)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, added{probe, file, config.SandboxNotes(sources, c.Name)})
	}
	if c.Timeout > 0 {
		printProbe(proc, probe)
	}
	_, err = fmt.Fprintf(proc.Stdout, "added %s to %s\n", c.Name, file)
	printSandbox(proc.Stdout, sources, c.Name)
	return err
}

// printSandbox says what the sandbox of an added upstream means.
func printSandbox(to io.Writer, sources config.Sources, name string) {
	for _, note := range config.SandboxNotes(sources, name) {
		fmt.Fprintf(to, "  %s\n", plainText(note))
	}
}

func addHint(probe client.Probe) string {
	anyway := "--force adds it anyway"
	if strings.Contains(probe.Error, " was refused ") {
		anyway = "--sandbox off adds it without a sandbox; " + anyway
	}
	if probe.Hint == "" {
		return anyway
	}
	return probe.Hint + "; " + anyway
}

// checkForServer refuses what a running server does not take.
func (c *upstreamAddCommand) checkForServer(isAPI bool, address string, command []string) error {
	switch {
	case c.Org != "" && (isAPI || len(command) > 0):
		return fault.New(fault.Denied, "an organisation adds MCP servers by their address, no commands and no APIs").
			WithHint("the operators of the server can add them in luanette.toml: [orgs.%s.upstreams.%s]", c.Org, c.Name)
	case c.Trust != "":
		return fault.New(fault.InvalidParams, "--trust is for the configuration file").
			WithHint("omit --server; upstreams added to a running server follow its trust setting")
	case len(c.Set) > 0:
		return fault.New(fault.InvalidParams, "--set is for the configuration file").
			WithHint("omit --server; or add it first, and change it: luanette upstream edit %s --server %s --set …", c.Name, c.Server)
	case len(command) > 0:
		return fault.New(fault.Denied, "an upstream with a command cannot be added to a running server").
			WithHint("omit --server: the command goes into the configuration file, which the server watches")
	case isAPI && !api.IsURL(address) || c.hasAPISettings():
		return fault.New(fault.Denied, "a running server takes only the URL of an API or its document").
			WithHint("omit --server: files and --base-url, --schema and --include go into the configuration file, which the server watches")
	}
	return nil
}

// addToServer adds the upstream to a running server, and removes it again if the server
// cannot connect to it.
func (c *upstreamAddCommand) addToServer(ctx context.Context, proc *process, url string, command []string) error {
	kind, address, count := c.api()
	isAPI := count > 0
	if endpoint, err := (api.Settings{Source: address}).Endpoint(); err == nil && kind == api.GRPC {
		address = endpoint.String()
	}
	if err := c.checkForServer(isAPI, address, command); err != nil {
		return err
	}
	name := principal.InOrg(c.Name, c.Org)
	arguments := map[string]any{"namespace": name, "url": url, "wait_ms": 0}
	if len(c.Header) > 0 {
		arguments["headers"] = c.Header
	}
	if isAPI {
		arguments["url"], arguments["transport"] = address, kind
	}
	return c.withClient(ctx, proc, func(server client.Client) error {
		if _, err := client.Status(ctx, server, name); err == nil && !c.Replace {
			return fault.New(fault.Conflict, "the server has an upstream %q already", name).WithHint("choose another name, or replace it with --replace")
		}
		if _, err := callTool(ctx, proc, server, "mcp_connect", arguments); err != nil {
			return err
		}
		probe, err := c.await(ctx, proc, server, name)
		if err != nil {
			return err
		}
		if !probe.Works() && !c.Force && c.Timeout > 0 {
			if _, err := callTool(ctx, proc, server, "mcp_disconnect", map[string]any{"namespace": name}); err != nil {
				return err
			}
			return problem(probe, "not added").WithHint("%s", addHint(probe))
		}
		if c.JSON {
			return printValue(proc, added{Probe: probe})
		}
		printProbe(proc, probe)
		_, err = fmt.Fprintf(proc.Stdout, "added %s to %s\n", name, c.Server)
		return err
	})
}

// settingFlag sets what has no flag of its own.
type settingFlag struct {
	Set map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Any other setting by its key in docs/configuration.md, such as timeout=90s or labels=private,work."`
}

// probeFlags are the flags of commands that connect to an upstream to see whether it works.
type probeFlags struct {
	Timeout time.Duration `default:"2m" help:"How long the upstream may take to start and answer."`
}
