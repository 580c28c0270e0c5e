// Command luanette is a programmable control plane for MCP: one server in front
// of any number of tool servers. One file per subject, as job.go; this one reads the
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
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/attach"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitWaiting = 3 // a script waits for approval

	exitServerGone = 4 // the server of a job has ended; the job continues when it is back

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
	Set       setCommand       `cmd:"" group:"Run a server:" help:"List, show and add sets of tools."`
	Install   installCommand   `cmd:"" group:"Run a server:" help:"Connect your MCP clients to Luanette."`
	Uninstall uninstallCommand `cmd:"" group:"Run a server:" help:"Put the configuration of MCP clients back as it was."`
	HUD       hudCommand       `cmd:"" group:"Run a server:" name:"hud" help:"Watch and operate a running server: servers, approvals, jobs, traces and log, live."`
	Activity  activityCommand  `cmd:"" group:"Run a server:" help:"Show what your agents do: sessions, calls and what came of them."`
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
	warned  bool // that the configuration file is not trusted
	status  statusLine
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
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
		command, below := commandOf(err)
		fmt.Fprintf(proc.Stderr, "%s: %s\n", command, usageMessage(err))
		switch {
		case len(below) == 1:
			fmt.Fprintf(proc.Stderr, "it has %s: %s\n", below[0].Name, below[0].Help)
		case len(below) > 1:
			fmt.Fprintf(proc.Stderr, "it has %s\n", strings.Join(namesOf(below), ", "))
		default:
			suggestCommand(proc, parser.Model.Node, args)
		}
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

// commandOf returns the part of the command line that the parser understood, and the names of
// the commands that may follow it.
func commandOf(err error) (words string, below []*kong.Node) {
	words = "luanette"
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return words, nil
	}
	for _, step := range parse.Context.Path {
		if step.Command == nil {
			continue
		}
		words, below = words+" "+step.Command.Name, step.Command.Children
	}
	return words, below
}

func namesOf(nodes []*kong.Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// suggestCommand names the command that args are when they begin with one of another command:
// `luanette job schedule list` for schedule list.
func suggestCommand(proc *process, whole *kong.Node, args []string) {
	known := func(n *kong.Node) bool { return len(args) > 0 && n.Name == args[0] }
	if slices.ContainsFunc(whole.Children, known) {
		return
	}
	for _, command := range whole.Children {
		i := slices.IndexFunc(command.Children, known)
		if i < 0 {
			continue
		}
		words := []string{"luanette", command.Name, args[0]}
		if len(args) > 1 && slices.Contains(namesOf(command.Children[i].Children), args[1]) {
			words = append(words, args[1])
		}
		fmt.Fprintf(proc.Stderr, "did you mean `%s`?\n", strings.Join(words, " "))
		return
	}
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
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(proc.Stderr, "  %s\n", strings.ReplaceAll(hint, "\n", "\n  "))
	}
	return failureOf(err)
}

// hintOf returns what to do about err, in lines.
func hintOf(err error) string {
	return strings.TrimSpace(fileowner.Denied(err) + "\n" + fault.HintOf(err))
}

// failureOf returns the exit code of err.
func failureOf(err error) int {
	if fault.CodeOf(err) == fault.Config {
		return exitUsage
	}
	return exitFailure
}

// globalFlags are the flags of every command.
type globalFlags struct {
	Version versionFlag `short:"v" help:"Print the version."`
	NoColor noColorFlag `help:"Print no colours. NO_COLOR=1 does the same."`
}

// versionFlag prints the version instead of running a command.
type versionFlag bool

// BeforeReset runs when the flag is parsed, before a missing command is an error.
func (versionFlag) BeforeReset(app *kong.Kong, proc *process) error {
	if err := (versionCommand{}).Run(proc); err != nil {
		return err
	}
	app.Exit(exitOK)
	return nil
}

// noColorFlag switches colours off.
type noColorFlag bool

// AfterApply runs if the flag was given.
func (noColorFlag) AfterApply(proc *process) error {
	proc.noColor = true
	return nil
}

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "0.1.0-dev"

// versionCommand is `luanette version`.
type versionCommand struct{}

// Run prints the version, the commit it was built from and the Go that built it.
func (versionCommand) Run(proc *process) error {
	_, err := fmt.Fprintf(proc.Stdout, "luanette %s%s %s %s/%s\n", version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit returns the commit of the build, such as " (abcdef123456)", or "".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	return ""
}

// settingFlags are the flags that every command reading the configuration has.
// A pointer that stays nil was not given, so that the file and the environment
// decide.
type settingFlags struct {
	Config       string  `short:"c" type:"path" placeholder:"FILE" help:"Configuration file (default: ./luanette.toml, then the one in the configuration folder)."`
	Data         *string `type:"path" placeholder:"DIR" help:"Folder for all stored data."`
	Database     *string `placeholder:"URL" help:"Where the store is: sqlite:PATH or postgres://USER@HOST/DATABASE."`
	LogLevel     *string `placeholder:"LEVEL" help:"How much to log: debug, info, warn or error."`
	LogFormat    *string `placeholder:"FORMAT" help:"Log format: text or json."`
	OTLPEndpoint *string `name:"otlp-endpoint" placeholder:"HOST:PORT" help:"Collector to send traces, metrics and logs to."`

	Change func(*config.Config) `kong:"-"` // what the command changes in the configuration
}

// load reads the configuration, and says which parts of it are not trusted. Flags that were
// given take precedence.
func (f *settingFlags) load(proc *process, more map[string]*string) (*config.Loaded, error) {
	loaded, err := f.loadQuietly(proc, more)
	if err == nil {
		warnUntrusted(proc, loaded)
	}
	return loaded, err
}

func (f *settingFlags) loadQuietly(proc *process, more map[string]*string) (*config.Loaded, error) {
	flags := map[string]string{}
	given := map[string]*string{
		"data": f.Data, "database": f.Database,
		"log.level": f.LogLevel, "log.format": f.LogFormat,
		"telemetry.otlp_endpoint": f.OTLPEndpoint,
	}
	for _, set := range []map[string]*string{given, more} {
		for key, value := range set {
			if value != nil {
				flags[key] = *value
			}
		}
	}
	return f.read(proc, flags)
}

// read reads the configuration.
func (f *settingFlags) read(proc *process, flags map[string]string) (*config.Loaded, error) {
	return config.Load(config.Sources{File: f.Config, Env: proc.Env, Flags: flags, Change: f.Change})
}

// serverFlag is the address of a running server.
type serverFlag struct {
	Server string `short:"s" placeholder:"URL" help:"The server to connect to (default: the one on the data folder, else the address in the configuration)."`
}

// address returns the server's address: that of the flag, of the server that runs on the data
// folder, or of the configuration.
func (f *serverFlag) address(ctx context.Context, proc *process, settings *settingFlags) (string, error) {
	if err := settings.asService(ctx, proc, &f.Server); f.Server != "" || err != nil {
		return f.Server, err
	}
	loaded, err := settings.load(proc, nil)
	if err != nil {
		return "", err
	}
	return addressOf(ctx, proc, loaded), nil
}

// asService sets the server, if none is named, to the one that runs on the data folder, where this
// process is root's and the folder another user's: root acts through it, and neither starts what
// it starts nor leaves files that it cannot read.
func (f *settingFlags) asService(ctx context.Context, proc *process, server *string) error {
	if *server != "" || os.Geteuid() != 0 {
		return nil
	}
	loaded, err := f.loadQuietly(proc, nil)
	if err != nil || !fileowner.Foreign(loaded.Data) {
		return err
	}
	if running, err := attach.Find(ctx, placeOf(loaded, proc.Env), true); err == nil {
		*server = running.Address()
	}
	return nil
}

// addressOf returns the address of the server that runs on the data folder, on whatever port,
// or otherwise the one in the configuration.
func addressOf(ctx context.Context, proc *process, loaded *config.Loaded) string {
	if running, err := attach.Find(ctx, placeOf(loaded, proc.Env), true); err == nil && running.URL != "" {
		return running.URL
	}
	return loaded.Address()
}

// configCommand is `luanette config`.
type configCommand struct {
	Show configShowCommand `cmd:"" help:"Print the effective configuration, secrets hidden."`
}

// configShowCommand is `luanette config show`.
type configShowCommand struct {
	settingFlags
	Listen *string `placeholder:"ADDR" help:"As for serve."`
}

// Run prints every key with its value and where it came from.
func (c *configShowCommand) Run(proc *process) error {
	loaded, err := c.load(proc, map[string]*string{"listen": c.Listen})
	if err != nil {
		return err
	}
	return loaded.Show(proc.Stdout)
}
