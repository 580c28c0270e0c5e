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
	exitWaiting = 3 // a script waits for somebody's approval
)

// cli is the whole command line. A subcommand is a struct in its own file with a
// Run method and one line here.
type cli struct {
	Serve    serveCommand    `cmd:"" help:"Run the server: MCP, health and everything else over HTTP."`
	Stdio    stdioCommand    `cmd:"" help:"Run the MCP server on standard input and output."`
	Tools    toolsCommand    `cmd:"" help:"List or search the tools of all upstreams."`
	Tokens   tokensCommand   `cmd:"" help:"Show what tools take of a model's context."`
	Call     callCommand     `cmd:"" help:"Call a tool."`
	Chat     chatCommand     `cmd:"" help:"Talk to an agent that has every tool at hand."`
	Run      runCommand      `cmd:"" help:"Run a script file."`
	Eval     evalCommand     `cmd:"" help:"Run a line of Lua."`
	Preview  previewCommand  `cmd:"" help:"Show what a script would do, without doing it."`
	Replay   replayCommand   `cmd:"" help:"Run a job again from its journal, offline."`
	Repl     replCommand     `cmd:"" help:"Type Lua and see what it returns; variables persist."`
	Script   scriptCommand   `cmd:"" help:"Keep, find and publish scripts."`
	Job      jobCommand      `cmd:"" help:"Start, watch and stop jobs on a server."`
	HUD      hudCommand      `cmd:"" name:"hud" help:"Watch a running server: upstreams, jobs, calls and log, live."`
	Trace    traceCommand    `cmd:"" help:"Look at the latest requests of a running server, step by step."`
	Hoot     hootCommand     `cmd:"" help:"Run the music tools as a backend of their own, over ZeroMQ."`
	Backend  backendCommand  `cmd:"" help:"Ask a backend over ZeroMQ directly."`
	Approval approvalCommand `cmd:"" help:"Decide what scripts may do that wait for approval."`
	Pin      pinCommand      `cmd:"" help:"Approve or refuse what upstreams say of their tools."`
	Key      keyCommand      `cmd:"" help:"Make, list and revoke the keys that open a server."`
	Policy   policyCommand   `cmd:"" help:"Explain who may call what."`
	Audit    auditCommand    `cmd:"" help:"Look at who did what."`
	Cert     certCommand     `cmd:"" help:"Make a certificate to serve HTTPS with."`
	Upstream upstreamCommand `cmd:"" help:"Add, remove and look at upstream tool servers."`
	Lua      luaCommand      `cmd:"" passthrough:"" help:"Run plain Lua 5.4, unsandboxed, as lua5.4 does."`
	Nodes    nodesCommand    `cmd:"" help:"List the servers that share a database."`
	Backup   backupCommand   `cmd:"" help:"Write everything that is kept to one file, while servers go on."`
	Restore  restoreCommand  `cmd:"" help:"Make the data folder what a backup holds."`
	Config   configCommand   `cmd:"" help:"Look at the configuration."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// process is the outside world as commands see it; tests give them another.
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
		debug.SetGCPercent(config.DefaultGCPercent) // until the configuration is read, and where it is not
	}
	world := &process{os.Stdin, os.Stdout, os.Stderr, config.ProcessEnvironment(os.Environ())}
	code := run(ctx, world, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the program without the process around it.
func run(ctx context.Context, world *process, args []string) int {
	finished := -1
	args = spelt(args)
	parser := kong.Must(branch(args),
		kong.Name("luanette"),
		kong.Description("A programmable control plane for MCP: one server in front of all your tool servers."),
		kong.Writers(world.Stdout, world.Stderr),
		kong.Exit(func(code int) { finished = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(world),
	)
	parsed, err := parser.Parse(args)
	if finished >= 0 { // --help has printed itself
		return finished
	}
	if err != nil {
		command := commandOf(err)
		fmt.Fprintf(world.Stderr, "%s: %s\n", command, mistake(err))
		if len(args) > 1 && strings.HasPrefix(args[0], "-") {
			fmt.Fprintln(world.Stderr, "flags come after the command they are for")
		}
		fmt.Fprintf(world.Stderr, "run `%s --help` to see what it takes\n", command)
		return exitUsage
	}
	return exitCode(world, parsed.Run())
}

// spelt is a command line as the parser knows it, of all the ways to ask for help.
func spelt(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// mistake says what is wrong with a command line; of one that ends too early the
// parser speaks in its own words.
func mistake(err error) string {
	flag, _, early := strings.Cut(err.Error(), ": expected ")
	if early && strings.HasSuffix(err.Error(), "(<EOL>)") {
		return flag + " needs a value after it"
	}
	return err.Error()
}

// branch is as much of the command line as args are about: the command they begin
// with, or everything. To describe all commands to the parser takes it longer than
// many of them take to run.
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

// commandOf is as much of the command line as was understood.
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

// exitStatus is an error that only carries an exit code: what there was to say
// has been said.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitCode reports err to the person at the terminal and picks the exit code.
func exitCode(world *process, err error) int {
	var status exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(world.Stderr, "luanette: %v\n", err)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(world.Stderr, "  %s\n", hint)
	}
	if fault.CodeOf(err) == fault.Config {
		return exitUsage
	}
	return exitFailure
}
