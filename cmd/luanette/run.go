package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
)

// runCommand is `luanette run`.
type runCommand struct {
	clientFlags
	languageFlag
	File  string   `arg:"" complete:"file" help:"The script; - reads it from standard input."`
	Param []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
}

// Help is shown by `luanette run --help`.
func (runCommand) Help() string {
	return `The script is Lua, or JavaScript or TypeScript if its name ends in .js or .ts. It
runs in the sandbox and can call every connected tool. If it defines main(params),
main is called with the parameters; otherwise the value of the file is the result.
Its output goes to standard output and standard error; the result comes last, as
JSON.`
}

// Run runs the script in this process or on a running server.
func (c *runCommand) Run(ctx context.Context, proc *process) error {
	source, err := readSource(proc, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes(c.File, c.Param)
	return c.evaluate(ctx, proc, c.of(c.File, sourceArgs(source, params)))
}

// scriptNotes returns the name of a script's file and its params as they were typed,
// since only the script's describe() knows which of them are text.
func scriptNotes(file string, pairs []string) map[string]any {
	notes := map[string]any{}
	if file != "" && file != "-" {
		notes[builtin.FileKey] = filepath.Base(file)
	}
	typed := map[string]string{}
	for _, pair := range pairs {
		if key, text, ok := strings.Cut(pair, "="); ok && !strings.HasSuffix(key, ":") {
			typed[key] = text
		}
	}
	if len(typed) > 0 {
		notes[builtin.TypedKey] = typed
	}
	return notes
}

// readParams reads KEY=VALUE pairs.
func readParams(pairs []string) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	for _, pair := range pairs {
		key, value, err := commandline.Pair(pair, anyType)
		if err != nil {
			return nil, err
		}
		params[key] = value
	}
	return params, nil
}

// sourceArgs returns the arguments of a tool that runs a script file. The tool calls
// main if it gets params, so they are added only if the file defines main.
func sourceArgs(source string, params map[string]json.RawMessage) map[string]any {
	args := map[string]any{"code": source}
	if len(params) > 0 || definesMain().MatchString(source) {
		args["params"] = params
	}
	return args
}

// definesMain matches the definition of the global function main.
var definesMain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*((async\s+)?function\s+main\s*[(<]|((const|let|var)\s+)?main\s*=)`)
})

// anyType reads a parameter as JSON if it is valid JSON. The server checks it against
// the script's describe().
func anyType(string) string { return "any" }

func readSource(proc *process, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(proc.Stdin)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fault.Wrap(fault.NotFound, err, "read script")
	}
	return string(text), nil
}

// evalCommand is `luanette eval`.
type evalCommand struct {
	clientFlags
	languageFlag
	Code string `arg:"" help:"An expression, or statements with a return; - reads standard input."`
}

// Run evaluates the code in this process or on a running server.
func (c *evalCommand) Run(ctx context.Context, proc *process) error {
	code := c.Code
	if code == "-" {
		text, err := io.ReadAll(proc.Stdin)
		if err != nil {
			return err
		}
		code = string(text)
	}
	return c.evaluate(ctx, proc, c.of("", map[string]any{"code": code}))
}

// evaluate runs a script with lua_eval and shows its output while it runs, then its
// result.
func (f *clientFlags) evaluate(ctx context.Context, proc *process, args map[string]any) error {
	var view tool.View
	shown := newLive(proc)
	err := f.withClient(ctx, proc, func(api client.Client) (err error) {
		caller := shown.caller()
		if !f.JSON {
			caller.Log = shown.log
		}
		view, err = api.Call(ctx, "lua_eval", args, caller)
		return err
	})
	shown.end()
	if err != nil {
		return err
	}
	if view.IsError {
		fmt.Fprintln(proc.Stderr, shown.errorText(view))
		return exitStatus(exitFailure)
	}
	if f.JSON {
		return printJSON(proc.Stdout, view.Structured)
	}
	if err := shown.printResult(view.Structured); err != nil {
		return err
	}
	if waits(view) {
		fmt.Fprintln(proc.Stderr, view.Text())
		return exitStatus(exitWaiting)
	}
	return nil
}

// waits reports whether a script waits for approval.
func waits(view tool.View) bool {
	_, waiting := view.PendingApproval()
	return waiting
}
