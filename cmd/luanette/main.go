// Command luanette is a programmable control plane for MCP: one server in front
// of any number of tool servers. One file per subcommand; this one reads the
// command line and decides the exit code.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitWaiting = 3 // a script waits for approval
)

// cli is the whole command line. A subcommand is a struct in its own file with a
// Run method and one line here.
type cli struct {
	Serve    serveCommand    `cmd:"" help:"Run the server: MCP, health and everything else over HTTP."`
	Stdio    stdioCommand    `cmd:"" help:"Run the MCP server on standard input and output."`
	Tools    toolsCommand    `cmd:"" help:"List or search the tools of all upstreams."`
	Tokens   tokensCommand   `cmd:"" help:"Show how much of a model's context the tools take."`
	Call     callCommand     `cmd:"" help:"Call a tool."`
	Chat     chatCommand     `cmd:"" help:"Chat with an agent that can use every tool."`
	Run      runCommand      `cmd:"" help:"Run a script file."`
	Eval     evalCommand     `cmd:"" help:"Run a line of Lua."`
	Preview  previewCommand  `cmd:"" help:"Show what a script would do, without doing it."`
	Replay   replayCommand   `cmd:"" help:"Run a job again from its journal, offline."`
	Repl     replCommand     `cmd:"" help:"Type Lua and see what it returns; variables persist."`
	Script   scriptCommand   `cmd:"" help:"Store, find and publish scripts."`
	Job      jobCommand      `cmd:"" help:"Start, watch and stop jobs on a server."`
	HUD      hudCommand      `cmd:"" name:"hud" help:"Watch a running server: upstreams, jobs, calls and log, live."`
	Trace    traceCommand    `cmd:"" help:"Show the latest requests of a running server, step by step."`
	Hoot     hootCommand     `cmd:"" help:"Run the music tools as a separate backend, over ZeroMQ."`
	Backend  backendCommand  `cmd:"" help:"Send requests to a backend over ZeroMQ."`
	Approval approvalCommand `cmd:"" help:"List and decide the requests of scripts for approval."`
	Pin      pinCommand      `cmd:"" help:"Approve or refuse the tool definitions of upstreams."`
	Key      keyCommand      `cmd:"" help:"Create, list and revoke the API keys of a server."`
	Policy   policyCommand   `cmd:"" help:"Explain which keys may call which tools."`
	Audit    auditCommand    `cmd:"" help:"Show, verify and export the audit log."`
	Cert     certCommand     `cmd:"" help:"Create a certificate for HTTPS."`
	Upstream upstreamCommand `cmd:"" help:"Add, change, remove and list upstream tool servers."`
	Lua      luaCommand      `cmd:"" passthrough:"" help:"Run plain Lua 5.4, unsandboxed, as lua5.4 does."`
	Nodes    nodesCommand    `cmd:"" help:"List the servers that share a database."`
	Backup   backupCommand   `cmd:"" help:"Write all stored data to one file; servers may keep running."`
	Restore  restoreCommand  `cmd:"" help:"Restore the data folder and the database from a backup."`
	Config   configCommand   `cmd:"" help:"Show the configuration."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// process holds the standard streams and the environment of a command. Tests pass
// their own.
type process struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    config.Environment
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(config.DefaultGCPercent) // until a command reads the configuration
	}
	proc := &process{os.Stdin, os.Stdout, os.Stderr, config.ProcessEnvironment(os.Environ())}
	code := run(ctx, proc, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses the arguments, runs the command and returns the exit code.
func run(ctx context.Context, proc *process, args []string) int {
	finished := -1
	args = expandHelp(args)
	parser := kong.Must(branch(args),
		kong.Name("luanette"),
		kong.Description("A programmable control plane for MCP: one server in front of all your tool servers."),
		kong.Writers(proc.Stdout, proc.Stderr),
		kong.Exit(func(code int) { finished = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(proc),
	)
	parsed, err := parser.Parse(args)
	if finished >= 0 { // --help has printed itself
		return finished
	}
	if err != nil {
		command := commandOf(err)
		fmt.Fprintf(proc.Stderr, "%s: %s\n", command, usageMessage(err))
		if len(args) > 1 && strings.HasPrefix(args[0], "-") {
			fmt.Fprintln(proc.Stderr, "flags must come after their command")
		}
		fmt.Fprintf(proc.Stderr, "run `%s --help` to see what it takes\n", command)
		return exitUsage
	}
	return exitCode(proc, parsed.Run())
}

// expandHelp rewrites the usual ways to ask for help into those that the parser knows.
func expandHelp(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// usageMessage returns what is wrong with a command line. It rewords the parser's error
// about a missing value.
func usageMessage(err error) string {
	flag, _, early := strings.Cut(err.Error(), ": expected ")
	if early && strings.HasSuffix(err.Error(), "(<EOL>)") {
		return flag + " needs a value after it"
	}
	return err.Error()
}

// branch returns the part of the command line that args need: the command they begin
// with, or everything. Describing all commands to the parser takes longer than many
// of them take to run.
func branch(args []string) any {
	whole := reflect.TypeFor[cli]()
	for i := range whole.NumField() {
		command := whole.Field(i)
		name := cmp.Or(command.Tag.Get("name"), strings.ToLower(command.Name))
		if len(args) > 0 && args[0] == name {
			return reflect.New(reflect.StructOf([]reflect.StructField{command})).Interface()
		}
	}
	return new(cli)
}

// commandOf returns the part of the command line that the parser understood.
func commandOf(err error) string {
	words := "luanette"
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return words
	}
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			words += " " + step.Command.Name
		}
	}
	return words
}

// exitStatus is an error that only carries an exit code; its message was printed
// already.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitCode prints err to standard error and returns the exit code.
func exitCode(proc *process, err error) int {
	var status exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(proc.Stderr, "luanette: %v\n", err)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(proc.Stderr, "  %s\n", hint)
	}
	if fault.CodeOf(err) == fault.Config {
		return exitUsage
	}
	return exitFailure
}
