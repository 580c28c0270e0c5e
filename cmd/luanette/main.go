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

	exitInterrupted = 130 // as shells report it
)

// cli is the whole command line. A subcommand is a struct in its own file with a
// Run method and one line here.
type cli struct {
	Global globalFlags `embed:""`

	Serve     serveCommand     `cmd:"" group:"Run a server:" help:"Run the server: MCP, web page and API over HTTP."`
	Open      openCommand      `cmd:"" group:"Run a server:" help:"Open the web page of the running server, signed in."`
	Reload    reloadCommand    `cmd:"" group:"Run a server:" help:"Have the running server read its configuration again."`
	Stdio     stdioCommand     `cmd:"" group:"Run a server:" help:"Run the MCP server on standard input and output."`
	Upstream  upstreamCommand  `cmd:"" group:"Run a server:" help:"Add, change, remove and list upstream tool servers."`
	Record    recordCommand    `cmd:"" group:"Run a server:" help:"Record what a tool server answers, for tests without it."`
	Import    importCommand    `cmd:"" group:"Run a server:" help:"Add the tool servers of your other MCP clients."`
	Registry  registryCommand  `cmd:"" group:"Run a server:" help:"Find tool servers in the MCP registry and add them."`
	Install   installCommand   `cmd:"" group:"Run a server:" help:"Connect your MCP clients to Luanette."`
	Uninstall uninstallCommand `cmd:"" group:"Run a server:" help:"Put the configuration of MCP clients back as it was."`
	HUD       hudCommand       `cmd:"" group:"Run a server:" name:"hud" help:"Watch and operate a running server: servers, approvals, jobs, traces and log, live."`
	Trace     traceCommand     `cmd:"" group:"Run a server:" help:"Show the latest requests of a running server, step by step."`
	Nodes     nodesCommand     `cmd:"" group:"Run a server:" help:"List the servers that share a database."`

	Tools  toolsCommand  `cmd:"" group:"Use tools:" help:"List or search the tools of all upstreams."`
	Call   callCommand   `cmd:"" group:"Use tools:" help:"Call a tool."`
	Chat   chatCommand   `cmd:"" group:"Use tools:" help:"Chat with an agent that can use every tool."`
	Tokens tokensCommand `cmd:"" group:"Use tools:" help:"Show how much of a model's context the tools take."`
	Play   playCommand   `cmd:"" group:"Use tools:" help:"Play a MIDI file, a tune in ABC notation or a sound."`

	Eval    evalCommand    `cmd:"" group:"Write and run scripts:" help:"Run a line of Lua or JavaScript."`
	Run     runCommand     `cmd:"" group:"Write and run scripts:" help:"Run a script file."`
	Repl    replCommand    `cmd:"" group:"Write and run scripts:" help:"Type Lua and see what it returns; variables persist."`
	Test    testCommand    `cmd:"" group:"Write and run scripts:" help:"Run the tests of scripts, with recorded tool servers."`
	Preview previewCommand `cmd:"" group:"Write and run scripts:" help:"Show what a script would do, without doing it."`
	Script  scriptCommand  `cmd:"" group:"Write and run scripts:" help:"Store, find and publish scripts."`
	Job     jobCommand     `cmd:"" group:"Write and run scripts:" help:"Run, watch and stop jobs on a server."`
	Replay  replayCommand  `cmd:"" group:"Write and run scripts:" help:"Run a job again from its journal, offline."`
	Lua     luaCommand     `cmd:"" group:"Write and run scripts:" passthrough:"" help:"Run plain Lua 5.4, unsandboxed, as lua5.4 does."`

	Login    signInCommand   `cmd:"" group:"Decide who may do what:" help:"Sign in at a server, as a person."`
	Logout   signOutCommand  `cmd:"" group:"Decide who may do what:" help:"End the login at a server."`
	Who      whoCommand      `cmd:"" group:"Decide who may do what:" help:"Show as whom a server knows you."`
	Share    shareCommand    `cmd:"" group:"Decide who may do what:" help:"Share jobs, schedules, sessions and more with others of your organisation."`
	People   peopleCommand   `cmd:"" group:"Decide who may do what:" help:"List and block the people of a server."`
	Org      orgCommand      `cmd:"" group:"Decide who may do what:" help:"Show the quotas of organisations."`
	Key      keyCommand      `cmd:"" group:"Decide who may do what:" help:"Create, list and revoke the API keys of a server."`
	Secret   secretCommand   `cmd:"" group:"Decide who may do what:" help:"Store values of your own for upstreams, such as API keys."`
	Approval approvalCommand `cmd:"" group:"Decide who may do what:" help:"List and decide the requests of scripts for approval."`
	Trust    trustCommand    `cmd:"" group:"Decide who may do what:" help:"Let the luanette.toml of a folder start what it names."`
	Pin      pinCommand      `cmd:"" group:"Decide who may do what:" help:"Approve or refuse the tool definitions of upstreams."`
	Policy   policyCommand   `cmd:"" group:"Decide who may do what:" help:"Explain which keys may call which tools."`
	Audit    auditCommand    `cmd:"" group:"Decide who may do what:" help:"Show, verify and export the audit log."`
	Cert     certCommand     `cmd:"" group:"Decide who may do what:" help:"Create a certificate for HTTPS."`

	Doctor  doctorCommand  `cmd:"" group:"Look after it:" help:"Check everything, and say what to do about what is wrong."`
	Config  configCommand  `cmd:"" group:"Look after it:" help:"Show the configuration."`
	Backup  backupCommand  `cmd:"" group:"Look after it:" help:"Write all stored data to one file; servers may keep running."`
	Restore restoreCommand `cmd:"" group:"Look after it:" help:"Restore the data folder and the database from a backup."`
	Support supportCommand `cmd:"" group:"Look after it:" help:"Write one archive for a bug report, without secrets."`
	Version versionCommand `cmd:"" group:"Look after it:" help:"Print the version."`

	Completion completionCommand `cmd:"" group:"Look after it:" help:"Print a script that completes commands in bash, zsh or fish."`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Print the candidates for the last word of a command line."`

	Hoot    hootCommand    `cmd:"" group:"Backends over ZeroMQ:" help:"Run the music tools as a separate backend."`
	Backend backendCommand `cmd:"" group:"Backends over ZeroMQ:" help:"Send requests to a backend."`
}

// process holds the standard streams and the environment of a command. Tests pass
// their own.
type process struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    config.Environment

	noColor bool // --no-color
	status  statusLine
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(config.DefaultGCPercent) // until a command reads the configuration
	}
	proc := &process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: config.ProcessEnvironment(os.Environ())}
	code := run(ctx, proc, os.Args[1:])
	stop()
	os.Exit(code)
}

// run parses the arguments, runs the command and returns the exit code.
func run(ctx context.Context, proc *process, args []string) int {
	finished := -1
	args = expandHelp(args)
	parser := newParser(ctx, proc, branch(args), func(code int) { finished = code })
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

// newParser returns the parser of a command line, or of a branch of it.
func newParser(ctx context.Context, proc *process, grammar any, exit func(code int)) *kong.Kong {
	return kong.Must(grammar,
		kong.Name("luanette"),
		kong.Description("A programmable control plane for MCP: one server in front of all your tool servers."),
		kong.Writers(proc.Stdout, proc.Stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true}),
		kong.Help(printHelp),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(proc),
	)
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
		if _, ok := command.Tag.Lookup("cmd"); ok && len(args) > 0 && args[0] == name {
			global, _ := whole.FieldByName("Global")
			return reflect.New(reflect.StructOf([]reflect.StructField{global, command})).Interface()
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
	fmt.Fprintf(proc.Stderr, "%s %v\n", proc.style(proc.Stderr).bad("luanette:"), err)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(proc.Stderr, "  %s\n", hint)
	}
	if fault.CodeOf(err) == fault.Config {
		return exitUsage
	}
	return exitFailure
}
