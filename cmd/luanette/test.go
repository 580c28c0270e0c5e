package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/tool"
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
		err = fault.New(fault.NotFound, "no tests found").
			WithHint("a test is a function test_NAME in a file that ends in _test.lua, _test.js or _test.ts")
	}
	return tests, err
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
	view, err := api.With(map[string]any{builtin.FileKey: filepath.Base(t.File.Path)}).
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
