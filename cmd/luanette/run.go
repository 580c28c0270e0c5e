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

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// runCommand is `luanette run`.
type runCommand struct {
	clientFlags
	languageFlag
	File  string   `arg:"" help:"The script; - reads it from standard input."`
	Param []string `short:"p" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON as it is."`
}

// Help is shown by `luanette run --help`.
func (runCommand) Help() string {
	return `The script is Lua, or JavaScript or TypeScript when its name ends in .js or .ts. It
is run in the sandbox with every connected tool at hand. When it
defines main(params), main is called with the parameters; otherwise the value of
the file is the result. What it prints goes where it printed it; the result comes
last, as JSON.`
}

// Run runs the script here or on a running server.
func (c *runCommand) Run(ctx context.Context, world *process) error {
	source, err := readSource(world, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes(c.File, c.Param)
	return c.evaluate(ctx, world, c.of(c.File, sourceArgs(source, params)))
}

// scriptNotes tell what a script's file is called, and how its params were typed:
// which of them are text, only its describe() knows.
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
		key, value, err := readPair(pair, anyType)
		if err != nil {
			return nil, err
		}
		params[key] = value
	}
	return params, nil
}

// sourceArgs are the arguments of a tool that runs a script file: with params
// main is called, so there are some only if there is a main.
func sourceArgs(source string, params map[string]json.RawMessage) map[string]any {
	args := map[string]any{"code": source}
	if len(params) > 0 || definesMain().MatchString(source) {
		args["params"] = params
	}
	return args
}

// definesMain finds the global function that makes a file more than a list of
// statements.
var definesMain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*((async\s+)?function\s+main\s*[(<]|((const|let|var)\s+)?main\s*=)`)
})

// anyType reads a parameter as JSON where it is JSON: the script's describe()
// says what it wants, and turns what does not fit away.
func anyType(string) string { return "any" }

func readSource(world *process, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(world.Stdin)
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

// Run evaluates the code here or on a running server.
func (c *evalCommand) Run(ctx context.Context, world *process) error {
	code := c.Code
	if code == "-" {
		text, err := io.ReadAll(world.Stdin)
		if err != nil {
			return err
		}
		code = string(text)
	}
	return c.evaluate(ctx, world, c.of("", map[string]any{"code": code}))
}

// evaluate runs a script by lua_eval and shows what it says, as it says it, and
// then what it returned.
func (f *clientFlags) evaluate(ctx context.Context, world *process, args map[string]any) error {
	var view tool.View
	shown := newLive(world)
	err := f.at(ctx, world, func(api client.Client) (err error) {
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
		fmt.Fprintln(world.Stderr, shown.failure(view))
		return exitStatus(exitFailure)
	}
	if f.JSON {
		return printJSON(world.Stdout, view.Structured)
	}
	if err := shown.answer(view.Structured); err != nil {
		return err
	}
	if waits(view) {
		fmt.Fprintln(world.Stderr, view.Text())
		return exitStatus(exitWaiting)
	}
	return nil
}

// waits tells whether a script waits for somebody's approval.
func waits(view tool.View) bool {
	var answer struct{ Status string }
	return json.Unmarshal(view.Structured, &answer) == nil && answer.Status == script.StatusWaiting
}

// answer prints the lines that did not come before, and the result.
func (l *live) answer(structured json.RawMessage) error {
	lines, result, err := readAnswer(structured)
	if err != nil {
		return err
	}
	l.lines(lines)
	if result == nil {
		return nil
	}
	return printJSON(l.world.Stdout, result)
}

// failure is the text of a script's failure. What the script said before, which the
// text ends with, was printed where it belongs, or is now.
func (l *live) failure(view tool.View) string {
	var meta map[string]json.RawMessage
	var said []script.LogMessage
	if json.Unmarshal(view.Meta, &meta) != nil || json.Unmarshal(meta[script.OutputKey], &said) != nil {
		return view.Text()
	}
	for i := range said {
		said[i].Number = int64(i) + 1
	}
	l.lines(said)
	text := view.Text()
	if at := strings.LastIndex(text, script.OutputHeading); at >= 0 {
		text = text[:at]
	}
	return text
}

// readAnswer takes what a script said and its result out of a tool's answer. The
// result is nil when there is none.
func readAnswer(structured json.RawMessage) (lines []script.LogMessage, result json.RawMessage, err error) {
	var answer struct {
		Result json.RawMessage
		Output []struct{ Stream, Text string }
	}
	if err := json.Unmarshal(structured, &answer); err != nil {
		return nil, nil, fault.Wrap(fault.Upstream, err, "read answer")
	}
	for i, line := range answer.Output {
		lines = append(lines, script.LogMessage{Number: int64(i) + 1, Stream: line.Stream, Text: line.Text})
	}
	if string(answer.Result) == "null" {
		answer.Result = nil
	}
	return lines, answer.Result, nil
}

// lines prints those that were not printed yet.
func (l *live) lines(lines []script.LogMessage) {
	for _, line := range lines {
		l.line(line)
	}
}
