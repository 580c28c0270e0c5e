package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/recording"
	"github.com/luanette/luanette/internal/scripting/testrun"
	"github.com/luanette/luanette/internal/server"
)

// testCommand is `luanette test`.
type testCommand struct {
	Files    []string `arg:"" optional:"" type:"path" complete:"file" help:"Files or folders with tests (default: this folder)."`
	Config   string   `short:"c" type:"path" placeholder:"FILE" help:"Configuration file (default: luanette.toml beside the tests, or in a folder above up to this one)."`
	Filter   string   `short:"f" placeholder:"REGEXP" help:"Run only tests whose FILE:NAME matches."`
	Parallel int      `short:"j" placeholder:"N" help:"How many tests run at a time (default: one per processor)."`
	JUnit    string   `name:"junit" type:"path" placeholder:"FILE" help:"Write a report in JUnit's format, for CI."`
	Live     bool     `help:"Use the configuration as it is: with upstreams that are not recordings, and all rights of scripts."`
	Verbose  bool     `help:"Show what tests print that pass."`
}

// Help is shown by `luanette test --help`.
func (testCommand) Help() string {
	return `Runs the functions test_* of files *_test.lua, *_test.js and *_test.ts. A test fails
if it raises an error, for example with check.equal. Each test runs in a server of its
own, with an empty data folder and the configuration beside the file. Only upstreams
with mock = "FILE" exist, and scripts have no rights outside of the sandbox, unless
--live is given. The exit code is 1 if a test fails or none is found.`
}

// Run runs the tests.
func (c *testCommand) Run(ctx context.Context, proc *process) error {
	tests, err := c.find()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "luanette-test-")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "create folder for tests")
	}
	env, err := newTestEnvironment(c, proc, folder)
	if err != nil {
		return err
	}
	if c.Parallel <= 0 {
		c.Parallel = runtime.GOMAXPROCS(0)
	}
	var report testrun.Report
	testrun.Run(ctx, tests, c.Parallel, env.run, func(o testrun.Outcome) {
		o.File = &testrun.File{Path: shortPath(o.File.Path)}
		report.Outcomes = append(report.Outcomes, o)
		fmt.Fprint(proc.Stdout, o.Text(c.Verbose))
	})
	fmt.Fprintln(proc.Stdout, report.Summary())
	err = errors.Join(c.writeJUnit(&report), os.RemoveAll(folder))
	if err == nil && report.Failed() > 0 {
		return exitStatus(exitFailure)
	}
	return err
}

// find returns the tests that the command line chooses.
func (c *testCommand) find() ([]testrun.Test, error) {
	filter, err := regexp.Compile(c.Filter)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read --filter").WithHint("it is a regular expression, such as _test.lua:test_login")
	}
	paths := c.Files
	if len(paths) == 0 {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		paths = []string{here}
	}
	tests, err := testrun.Find(paths, filter)
	if err == nil && len(tests) == 0 {
		err = c.noTests(paths)
	}
	return tests, err
}

// noTests says why no test was chosen.
func (c *testCommand) noTests(paths []string) error {
	all, err := testrun.Find(paths, nil)
	switch {
	case err != nil:
		return err
	case len(all) > 0:
		return fault.New(fault.NotFound, "--filter %s matches none of %s", c.Filter, builtin.Count(len(all), "test")).
			WithHint("it is compared with FILE:NAME, such as %s:%s", filepath.ToSlash(shortPath(all[0].File.Path)), all[0].Name)
	}
	return fault.New(fault.NotFound, "no tests found").
		WithHint("a test is a function test_NAME in a file that ends in _test.lua, _test.js or _test.ts")
}

func (c *testCommand) writeJUnit(report *testrun.Report) error {
	if c.JUnit == "" {
		return nil
	}
	file, err := os.Create(c.JUnit)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "write JUnit report")
	}
	return errors.Join(report.WriteJUnit(file), file.Close())
}

// shortPath is a path from the working folder, if it is below.
func shortPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

// isBelow reports whether a folder is inside another one.
func isBelow(folder, other string) bool {
	below, err := filepath.Rel(other, folder)
	return err == nil && below != "." && filepath.IsLocal(below)
}

// testEnvironment makes the servers in which tests run.
type testEnvironment struct {
	command *testCommand
	proc    *process
	folder  string // for the data of all tests
	empty   string // a configuration file without settings
	cache   string // the user's compiled JavaScript engine, which takes long to make
}

func newTestEnvironment(c *testCommand, proc *process, folder string) (*testEnvironment, error) {
	e := &testEnvironment{command: c, proc: proc, folder: folder, empty: filepath.Join(folder, "luanette.toml")}
	if err := os.WriteFile(e.empty, nil, 0o600); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "create configuration for tests")
	}
	own, err := config.Load(config.Sources{File: e.empty, Env: proc.Env})
	if err != nil {
		return nil, err
	}
	e.cache = cmp.Or(own.Scripts.Cache, own.Folder("cache/javascript"))
	return e, nil
}

// testWait is how long a test waits for an upstream to connect.
const testWait = 30 * time.Second

// run runs a test in a server of its own.
func (e *testEnvironment) run(ctx context.Context, t testrun.Test) (tool.View, error) {
	loaded, err := e.load(t)
	if err != nil {
		return tool.View{}, err
	}
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: io.Discard, Env: e.variables(), OnDemand: true})
	if err != nil {
		return tool.View{}, err
	}
	api := client.Local(srv, testWait)
	view, err := api.With(map[string]any{scripttools.FileKey: filepath.Base(t.File.Path)}).
		Call(ctx, "lua_eval", languageFlag{}.of(t.File.Path, map[string]any{"code": t.Code()}), nil)
	return view, errors.Join(err, api.Close(ctx))
}

// load reads the configuration of a test.
func (e *testEnvironment) load(t testrun.Test) (*config.Loaded, error) {
	data, err := os.MkdirTemp(e.folder, "data-")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "create data folder")
	}
	file, err := e.configFile(filepath.Dir(t.File.Path))
	if err != nil {
		return nil, err
	}
	flags := map[string]string{"data": data, "database": "sqlite:" + filepath.Join(data, config.DatabaseFile), "scripts.cache": e.cache}
	return config.Load(config.Sources{File: file, Env: e.variables(), Flags: flags, Change: func(read *config.Config) {
		if folder := read.Scripts.Folder; folder != "" && !filepath.IsAbs(folder) {
			read.Scripts.Folder = filepath.Join(filepath.Dir(file), folder)
		}
		if !e.command.Live {
			read.Isolate()
		}
	}})
}

// variables are those of the process. Without --live there are no settings among them, and
// the home folder is empty.
func (e *testEnvironment) variables() config.Environment {
	if e.command.Live {
		return e.proc.Env
	}
	env := maps.Clone(e.proc.Env)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return slices.ContainsFunc([]string{"LUANETTE_", "OTEL_", "XDG_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	env["HOME"] = e.folder
	return env
}

// configFile is the configuration of tests in a folder: the nearest one up to the working
// folder, or an empty one.
func (e *testEnvironment) configFile(folder string) (string, error) {
	if e.command.Config != "" {
		return e.command.Config, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file := filepath.Join(folder, "luanette.toml")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		if !isBelow(folder, here) {
			return e.empty, nil
		}
		folder = filepath.Dir(folder)
	}
}

// recordCommand is `luanette record`.
type recordCommand struct {
	settingFlags
	languageFlag
	Name    string        `arg:"" complete:"upstream" help:"The upstream's namespace."`
	Tool    string        `arg:"" optional:"" help:"A tool of it to call."`
	Args    []string      `arg:"" optional:"" name:"key=value" help:"The tool's arguments: key=value, or key:=JSON."`
	Output  string        `short:"o" type:"path" placeholder:"FILE" help:"File to add to (default: mock of the upstream, otherwise NAME.mock.json)."`
	Replace bool          `help:"Begin a new file instead of adding to it."`
	Script  []string      `name:"run" type:"path" placeholder:"FILE" help:"Run a script whose calls are recorded; may be repeated."`
	Param   []string      `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params) of the scripts of --run; KEY:=JSON passes JSON unchanged."`
	Listen  *string       `short:"l" placeholder:"ADDR" help:"Address for clients whose calls are recorded (default 127.0.0.1:8081)."`
	Wait    time.Duration `default:"30s" help:"How long to wait for the upstream."`
}

// Help is shown by `luanette record --help`.
func (recordCommand) Help() string {
	return `Connects to a tool server of the configuration and writes what it answers to a file:
its lists of tools, resources and prompts, and then the answers to calls. With TOOL it
makes that call, with --run it runs scripts. With neither it serves MCP, as luanette
serve does, and records what clients do until it is stopped.

Secrets are masked. An upstream with mock = "FILE" answers from the file, without the
server; docs/testing.md describes how calls are matched.`
}

// Run records.
func (c *recordCommand) Run(ctx context.Context, proc *process) error {
	if len(c.Param) > 0 && len(c.Script) == 0 {
		return fault.New(fault.InvalidParams, "-p is for the scripts of --run").
			WithHint("arguments of a tool are written without it: luanette record NAME TOOL key=value")
	}
	file, err := c.prepare(proc)
	if err != nil {
		return err
	}
	c.Change = func(read *config.Config) {
		u := read.Upstreams[c.Name]
		u.Record, u.Mock = file, ""
		read.Upstreams[c.Name] = u
	}
	if err := c.listAll(ctx, proc); err != nil {
		return err
	}
	switch {
	case c.Tool != "":
		err = (&callCommand{clientFlags: c.clientFlags(), Tool: c.Name + "." + c.Tool, Args: c.Args}).Run(ctx, proc)
	case len(c.Script) > 0:
		err = c.runScripts(ctx, proc)
	default:
		fmt.Fprintf(proc.Stderr, "recording %s in %s until the server is stopped\n", c.Name, file)
		err = (&serveCommand{settingFlags: c.settingFlags, Listen: c.Listen}).Run(ctx, proc)
	}
	return errors.Join(err, report(proc, file))
}

// prepare finds the upstream, and returns the absolute path of the file.
func (c *recordCommand) prepare(proc *process) (file string, err error) {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return "", err
	}
	spec, err := configuredSpec(loaded, proc.Env, c.Name)
	if err != nil {
		return "", err
	}
	switch u, own := loaded.Upstreams[c.Name]; {
	case !own:
		return "", fault.New(fault.InvalidParams, "upstream %s belongs to the file of another program", c.Name).
			WithHint("add it to your own configuration with `luanette import`")
	case u.URL == "" && u.Command == "":
		return "", fault.New(fault.InvalidParams, "upstream %s is only a recording", c.Name).
			WithHint("give it the url or command of the real server, too; mock takes precedence over it")
	}
	file = c.Output
	if file == "" {
		file = spec.Mock
	}
	if file == "" {
		file = c.Name + ".mock.json"
	}
	if file, err = filepath.Abs(file); err == nil && c.Replace {
		if err = os.Remove(file); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return file, err
}

func (c *recordCommand) clientFlags() clientFlags {
	return clientFlags{settingFlags: c.settingFlags, Wait: c.Wait}
}

// listAll records what the upstream lists.
func (c *recordCommand) listAll(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: io.Discard, Env: proc.Env, OnDemand: true})
	if err != nil {
		return err
	}
	defer reportWaiting(proc, waitingForConnection(c.Name))()
	connecting, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	return errors.Join(client.ListAll(connecting, srv, c.Name), srv.Close(ctx))
}

// runScripts runs the scripts of --run.
func (c *recordCommand) runScripts(ctx context.Context, proc *process) error {
	for _, script := range c.Script {
		run := runCommand{clientFlags: c.clientFlags(), languageFlag: c.languageFlag, File: script, Param: c.Param}
		if err := run.Run(ctx, proc); err != nil {
			return err
		}
	}
	return nil
}

// report says what the file has now.
func report(proc *process, file string) error {
	recorded, err := recording.Load(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(proc.Stderr, "%s has %s\n", file, amount(len(recorded.Exchanges), "answer"))
	return nil
}
