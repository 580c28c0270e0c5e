package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/packages"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/ui/adminapi"
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
	doing, waiting := followConnection(name)
	defer reportWaiting(proc, waiting)()
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Logins: true, Log: slog.New(slog.DiscardHandler), Doing: doing}
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

// upstreamExplainCommand is `luanette upstream explain`.
type upstreamExplainCommand struct {
	clientFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace, or commands.NAME for a tool of [tools]."`
}

// Help is shown by `luanette upstream explain --help`.
func (upstreamExplainCommand) Help() string {
	return `Shows what really runs for the command of a tool server, and why: a package that
npx would run is installed, and its program started directly. Then it shows what the
sandbox refused in its last run, and the line of its table in the configuration that
would allow it. Whether it should be allowed is for you to decide: most servers work
without what they try. With --server it asks a running server what was refused.`
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
	if err := c.explainLaunch(proc); err != nil {
		return err
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

// explainLaunch prints what runs for the command.
func (c *upstreamExplainCommand) explainLaunch(proc *process) error {
	if c.Server != "" || strings.HasPrefix(c.Name, commandPrefix) {
		return nil
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	spec, err := configuredSpec(loaded, proc.Env, c.Name)
	if err != nil || spec.Command == "" {
		return err
	}
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Log: slog.New(slog.DiscardHandler)}
	launch, err := prober.Launch(spec)
	if err != nil {
		return err
	}
	record, installed := loaded.Packages(nil, nil).Find(launch.Request)
	switch {
	case launch.Installs() && installed:
		fmt.Fprintf(proc.Stdout, "runs %s %s, which was installed on %s: %s\n", record.Name, record.Version, record.Installed.Format(time.DateOnly), record.Start())
	case launch.Installs():
		fmt.Fprintf(proc.Stdout, "will run %s, which is installed with the first start\n", strings.Join(launch.Request.Specs, " "))
	case launch.Reason != "":
		fmt.Fprintf(proc.Stdout, "runs %s as it is written: %s\n", spec.Target(), launch.Reason)
	default:
		fmt.Fprintf(proc.Stdout, "runs %s as it is written\n", spec.Target())
	}
	for _, script := range record.Skipped {
		fmt.Fprintf(proc.Stdout, "    the install script of %s was not run; if it is needed: install_scripts = [%q]\n", script, packages.NameOf(script))
	}
	if record.Engines != "" {
		fmt.Fprintf(proc.Stdout, "    it wants node %s, and was installed with %s\n", record.Engines, record.Node)
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

// upstreamTraceCommand is `luanette upstream trace`.
type upstreamTraceCommand struct {
	settingFlags
	Name    string        `arg:"" complete:"upstream" help:"The upstream's namespace."`
	Call    []string      `sep:"none" placeholder:"TOOL=JSON" help:"Tool to call, with its arguments; may be repeated."`
	For     time.Duration `placeholder:"DURATION" help:"How long it stays connected after the calls, such as 2m."`
	Timeout time.Duration `default:"2m" help:"How long the upstream may take to start, and each call."`
}

// Help is shown by `luanette upstream trace --help`.
func (upstreamTraceCommand) Help() string {
	return `Starts a tool server in an open sandbox, lists its tools, calls those of --call,
ends it, and prints the smallest strict sandbox in which it can do the same, as a
table for the configuration. Comments say what each line is for, and what is left
for you to decide. What was not used was not seen: call the tools that you need.

  luanette upstream trace files --call 'list_directory={"path":"/srv/notes"}' > profile.toml`
}

// Run traces the upstream once and prints what it needs.
func (c *upstreamTraceCommand) Run(ctx context.Context, proc *process) error {
	options := client.TraceOptions{Timeout: c.Timeout, For: c.For}
	for _, text := range c.Call {
		call, err := client.ParseTraceCall(text)
		if err != nil {
			return err
		}
		options.Calls = append(options.Calls, call)
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	spec, err := configuredSpec(loaded, proc.Env, c.Name)
	if err != nil {
		return err
	}
	prober := client.Prober{Config: loaded, Env: proc.Env, Version: version, Log: slog.New(slog.DiscardHandler)}
	traced, err := prober.Trace(ctx, spec, options)
	if err != nil {
		return err
	}
	if !traced.Probe.Works() {
		return problem(traced.Probe, "was not traced").WithHint("%s", traced.Probe.Hint)
	}
	for _, line := range traced.Failed {
		fmt.Fprintf(proc.Stderr, "the call failed: %s\n", plainText(line))
	}
	_, err = fmt.Fprint(proc.Stdout, plainText(traced.Learned.TOML()))
	return err
}
