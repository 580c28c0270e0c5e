package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// upstreamTestCommand is `luanette upstream test`.
type upstreamTestCommand struct {
	clientFlags
	probeFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
}

// Help is shown by `luanette upstream test --help`.
func (upstreamTestCommand) Help() string {
	return `Connects to a tool server of the configuration, says how many tools it has and how
much of a model's context they take, and disconnects. If it does not work, the
command says why, with what the server wrote to its standard error, and exits with 1.

With --server it shows whether that server is connected, and lists the tools again.`
}

// Run connects to the upstream.
func (c *upstreamTestCommand) Run(ctx context.Context, proc *process) (err error) {
	var probe client.Probe
	if c.Server != "" {
		err = c.withClient(ctx, proc, func(api client.Client) error {
			probe, err = c.await(ctx, proc, api, c.Name)
			return err
		})
	} else {
		probe, err = c.testConfigured(ctx, proc)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		if err := printValue(proc, probe); err != nil || probe.Works() {
			return err
		}
		return exitStatus(exitFailure)
	}
	if !probe.Works() {
		return problem(probe, "does not work").WithHint("%s", probe.Hint)
	}
	printProbe(proc, probe)
	return nil
}

func (c *upstreamTestCommand) testConfigured(ctx context.Context, proc *process) (client.Probe, error) {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return client.Probe{}, err
	}
	return c.probe(ctx, proc, loaded, c.Name)
}

// probe connects to an upstream of a configuration in this process.
func (f *probeFlags) probe(ctx context.Context, proc *process, loaded *config.Loaded, name string) (client.Probe, error) {
	spec, err := configuredSpec(loaded, proc.Env, name)
	if err != nil {
		return client.Probe{}, err
	}
	defer reportWaiting(proc, waitingForConnection(name))()
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Logins: true, Log: slog.New(slog.DiscardHandler)}
	return prober.Probe(ctx, spec, f.Timeout)
}

// configuredSpec returns an upstream of a configuration.
func configuredSpec(loaded *config.Loaded, env config.Environment, name string) (upstream.Spec, error) {
	specs, _, err := loaded.UpstreamSpecs(env)
	if err != nil {
		return upstream.Spec{}, err
	}
	if at := slices.IndexFunc(specs, func(s upstream.Spec) bool { return s.Name == name }); at >= 0 {
		return specs[at], nil
	}
	if does, withheld := loaded.WithheldUpstreams()[name]; withheld {
		return upstream.Spec{}, fault.New(fault.Denied, "upstream %s is not trusted: it %s", name, does).WithHint("if you want that, run `luanette trust`")
	}
	names := make([]string, len(specs))
	for i := range specs {
		names[i] = specs[i].Name
	}
	missing := fault.New(fault.NotFound, "no upstream %q in the configuration", name)
	if near := suggest.Names(name, names, 3); len(near) > 0 {
		return upstream.Spec{}, missing.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return upstream.Spec{}, missing.WithHint("`luanette upstream list` shows them; --server tests one of a running server")
}

// await asks a running server for the state of an upstream until it has tried to connect.
func (f *probeFlags) await(ctx context.Context, proc *process, api client.Client, name string) (client.Probe, error) {
	defer reportWaiting(proc, waitingForConnection(name))()
	return client.AwaitUpstream(ctx, api, name, f.Timeout)
}

// printProbe prints what a working upstream offers, or what a failing one reported.
func printProbe(proc *process, probe client.Probe) {
	switch {
	case probe.NeedsLogin():
		fmt.Fprintf(proc.Stdout, "%s asks for a login: luanette upstream login %s\n", probe.Endpoint, probe.Namespace)
	case probe.Works():
		fmt.Fprintf(proc.Stdout, "connected, %s, %s\n", amount(probe.Tools, "tool"), amount(probe.Tokens, "token"))
	default:
		fmt.Fprintf(proc.Stdout, "%s: %s\n", probe.State, plainText(probe.Error))
	}
	for _, warning := range probe.Warnings {
		fmt.Fprintf(proc.Stdout, "warning: %s\n", plainText(warning))
	}
}

// problem returns what is wrong with an upstream.
func problem(probe client.Probe, outcome string) *fault.Error {
	return fault.New(fault.Unavailable, "upstream %s %s: %s", probe.Namespace, outcome, plainText(probe.Error))
}

// amount writes a number with its noun: 2,415 tokens.
func amount(n int, noun string) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if n != 1 {
		noun += "s"
	}
	return digits + " " + noun
}
