package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/mcp/registry"
)

// registryCommand is `luanette registry`.
type registryCommand struct {
	Search registrySearchCommand `cmd:"" help:"Find servers."`
	Add    registryAddCommand    `cmd:"" help:"Add a server as an upstream."`
}

// registryFlags are the flags of all commands that ask the registry.
type registryFlags struct {
	settingFlags
	JSON bool `help:"Print JSON."`
}

// open returns a client of the configured registry.
func (f *registryFlags) open(proc *process) (registry.Client, error) {
	loaded, err := config.LoadOrNew(config.Sources{File: f.Config, Env: proc.Env})
	if err != nil {
		return registry.Client{}, err
	}
	return registry.Client{URL: loaded.Registry.URL, HTTP: &http.Client{Timeout: time.Minute}}, nil
}

// registrySearchCommand is `luanette registry search`.
type registrySearchCommand struct {
	registryFlags
	Words []string `arg:"" help:"Words in the name, title or description; one of them must be in the name."`
}

// Run lists the servers that were found.
func (c *registrySearchCommand) Run(ctx context.Context, proc *process) error {
	client, err := c.open(proc)
	if err != nil {
		return err
	}
	found, err := client.Search(ctx, c.Words)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, map[string]any{"servers": found})
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "no server in the registry has these words")
		return err
	}
	var rows [][]string
	for _, l := range found {
		text := l.Server.Description
		if status := l.Status(); status != "" {
			text = strings.TrimSpace(status+": "+l.Meta.Official.StatusMessage) + " " + text
		}
		rows = append(rows, []string{plainText(l.Server.Name), plainText(l.Server.Version), plainText(short(text, 100))})
	}
	if err := table(proc, strings.Fields("NAME VERSION DESCRIPTION"), rows); err != nil {
		return err
	}
	_, err = fmt.Fprintln(proc.Stdout, "\nadd one with `luanette registry add NAME`")
	return err
}

// registryAddCommand is `luanette registry add`.
type registryAddCommand struct {
	registryFlags
	Name    string            `arg:"" name:"name[@version]" help:"The server's name, such as io.github.owner/server or io.github.owner/server@1.2.0."`
	Release string            `name:"server-version" placeholder:"VERSION" help:"Its version, instead of @VERSION (default: the latest)."`
	As      string            `placeholder:"NAME" help:"The upstream's namespace (default: the last part of the name)."`
	Env     map[string]string `short:"e" mapsep:"none" placeholder:"NAME=VALUE" help:"Environment variable that the server needs."`
	Header  map[string]string `short:"H" mapsep:"none" placeholder:"NAME=VALUE" help:"HTTP header that the server needs."`
	Set     map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"Argument, or variable of a URL, that the server needs."`
	Remote  bool              `help:"Use the server over the network, where it can also be started here."`
	Sandbox string            `placeholder:"LEVEL" help:"What its command may reach: off, open (the default) or strict; docs/sandbox.md."`
	Yes     bool              `short:"y" help:"Do not ask before it is added."`
	DryRun  bool              `help:"Show what would be added."`
}

// Help is shown by `luanette registry add --help`.
func (registryAddCommand) Help() string {
	return `Reads how to start or reach a server from the registry, asks for what it needs, shows
the command and adds it to luanette.toml. Secrets are stored in files beside it that
only you can read. The registry is that of the setting registry.url.

  luanette registry search weather
  luanette registry add io.github.acme/weather -e API_KEY=…`
}

// Run adds a server of the registry.
func (c *registryAddCommand) Run(ctx context.Context, proc *process) error {
	client, err := c.open(proc)
	if err != nil {
		return err
	}
	if name, version, given := strings.Cut(c.Name, "@"); given {
		c.Name, c.Release = name, version
	}
	listing, err := client.Get(ctx, c.Name, c.Release)
	if err != nil {
		return err
	}
	if err := c.checkStatus(proc, listing); err != nil {
		return err
	}
	given := map[string]map[string]string{"env": c.Env, "header": c.Header, "set": c.Set}
	if err := c.ask(proc, listing.Server, given); err != nil {
		return err
	}
	name := c.As
	if name == "" {
		name = clientfile.Namespace(listing.Server.Name[strings.LastIndexByte(listing.Server.Name, '/')+1:])
	}
	preview, err := listing.Server.Launch(c.Remote, registry.Values{Given: given, Store: hideSecret})
	if err != nil {
		return err
	}
	sources := config.Sources{File: c.Config, Env: proc.Env}
	if _, err := c.newUpstream(name, preview).Check(sources); err != nil {
		return err
	}
	if agreed, err := c.confirm(proc, name, preview); err != nil || !agreed {
		return err
	}
	return c.add(ctx, proc, sources, name, listing.Server, given)
}

// checkStatus refuses a deleted version, and warns of a deprecated one.
func (c *registryAddCommand) checkStatus(proc *process, listing registry.Listing) error {
	message := plainText(listing.Meta.Official.StatusMessage)
	switch listing.Status() {
	case "deleted":
		return fault.New(fault.NotFound, "%s %s was deleted from the registry: %s", c.Name, listing.Server.Version, message).
			WithHint("find another one with `luanette registry search`")
	case "deprecated":
		fmt.Fprintf(proc.Stderr, "warning: %s %s is deprecated: %s\n", c.Name, listing.Server.Version, message)
	}
	return nil
}

// ask asks for what is required and was not given. Where nobody can be asked, all that
// is missing is named.
func (c *registryAddCommand) ask(proc *process, server registry.Server, given map[string]map[string]string) error {
	launch, err := server.Launch(c.Remote, registry.Values{Given: given})
	if err != nil || len(launch.Missing) == 0 {
		return err
	}
	person := newPrompter(proc)
	if person == nil {
		flags := make([]string, len(launch.Missing))
		for i, need := range launch.Missing {
			flags[i] = need.Flag()
		}
		return fault.New(fault.InvalidParams, "%s needs more values", c.Name).WithHint("give %s", strings.Join(flags, " "))
	}
	for _, need := range launch.Missing {
		if given[need.Kind] == nil {
			given[need.Kind] = map[string]string{}
		}
		input := clientfile.Input{ID: need.Name, Description: need.Description, Secret: need.Secret, Options: need.Choices}
		if given[need.Kind][need.Name], err = askInput(person, config.Candidate{Server: clientfile.Server{Key: c.Name}}, input); err != nil {
			return err
		}
	}
	return nil
}

func hideSecret(string, string) (string, error) { return secret.Hidden, nil }

func (c *registryAddCommand) newUpstream(name string, l registry.Launch) config.NewUpstream {
	entry := config.Upstream{Command: l.Command, Args: l.Args, Env: l.Env, URL: l.URL, Transport: l.Transport, Headers: l.Headers}
	if entry.Command != "" {
		entry.Sandbox = c.Sandbox
	}
	return config.NewUpstream{Name: name, Entry: entry, Propose: true}
}

// confirm shows what will be added and asks whether it should.
func (c *registryAddCommand) confirm(proc *process, name string, l registry.Launch) (bool, error) {
	fmt.Fprintf(proc.Stderr, "%s will ", name)
	if l.Command != "" {
		fmt.Fprintf(proc.Stderr, "run: %s\n", plainText(strings.Join(append([]string{l.Command}, l.Args...), " ")))
	} else {
		fmt.Fprintf(proc.Stderr, "connect to: %s\n", plainText(l.URL))
	}
	for _, table := range []map[string]string{l.Env, l.Headers} {
		for key, value := range table {
			fmt.Fprintf(proc.Stderr, "  with %s=%s\n", plainText(key), plainText(value))
		}
	}
	if c.DryRun || c.Yes {
		return !c.DryRun, nil
	}
	person := newPrompter(proc)
	if person == nil {
		return false, fault.New(fault.InvalidParams, "nothing was added").WithHint("add --yes if this is what you want to run")
	}
	return person.yes("Add it?")
}

// add stores the secrets and adds the upstream.
func (c *registryAddCommand) add(ctx context.Context, proc *process, sources config.Sources, name string, server registry.Server, given map[string]map[string]string) error {
	store := func(key, value string) (string, error) {
		return config.StoreSecret(sources, clientfile.Namespace(name+"-"+key), secret.New(value))
	}
	launch, err := server.Launch(c.Remote, registry.Values{Given: given, Store: store})
	if err != nil {
		return err
	}
	file, err := config.AddUpstream(ctx, sources, c.newUpstream(name, launch))
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, map[string]string{"namespace": name, "file": file})
	}
	_, err = fmt.Fprintf(proc.Stdout, "added %s to %s; check it with `luanette upstream test %s`\n", name, underHome(proc, file), name)
	printSandbox(proc.Stdout, sources, name)
	return err
}
