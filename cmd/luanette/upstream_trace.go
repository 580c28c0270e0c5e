package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/client"
)

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
