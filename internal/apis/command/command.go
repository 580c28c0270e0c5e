// Package command offers programs of this machine as tools. They come only from the local
// configuration, and no shell is involved: each argument is a template of its own.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Defaults of commands.
const (
	DefaultTimeout  = time.Minute
	DefaultMaxBytes = 256 << 10
)

// Commands are the programs of a configuration. They are an api.API.
type Commands struct {
	byName map[string]*command
	list   []json.RawMessage
}

// command is one program, ready to run.
type command struct {
	api.CommandTool
	template *template
	defaults json.RawMessage
	launcher *launch.Launcher
}

// Open implements api.Opener.
func Open(_ context.Context, env api.Environment) (api.API, error) {
	all := &Commands{byName: map[string]*command{}}
	for _, name := range slices.Sorted(maps.Keys(env.Settings.Commands)) {
		c, input, err := prepare(env.Settings.Commands[name])
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "tools.%s", name).WithHint("%s", fault.HintOf(err))
		}
		c.launcher = env.Sandbox
		all.byName[name] = c
		all.list = append(all.list, definition(name, c.CommandTool, input))
	}
	return all, nil
}

// Check returns what is wrong with a command.
func Check(c api.CommandTool) error {
	_, _, err := prepare(c)
	return err
}

func prepare(c api.CommandTool) (*command, json.RawMessage, error) {
	t, err := parse(c)
	if err != nil {
		return nil, nil, err
	}
	input, defaults, err := inputSchema(c, t)
	return &command{CommandTool: c, template: t, defaults: defaults}, input, err
}

// List returns the commands whose programs exist.
func (all *Commands) List(context.Context) (api.Listing, error) {
	listing := api.Listing{Title: "commands", Instructions: "Programs of the server's machine."}
	for i, name := range slices.Sorted(maps.Keys(all.byName)) {
		if _, err := all.byName[name].find(); err != nil {
			listing.LeftOut = append(listing.LeftOut, name+": "+err.Error())
			continue
		}
		listing.Tools = append(listing.Tools, all.list[i])
	}
	return listing, nil
}

// Close does nothing: programs end with their calls.
func (all *Commands) Close() {}

// progressInterval is how often a running program is reported, so that callers wait.
const progressInterval = 10 * time.Second

// Call runs a program.
func (all *Commands) Call(ctx context.Context, call api.Call) (json.RawMessage, error) {
	c := all.byName[call.Tool]
	if c == nil {
		return nil, fault.New(fault.ToolNotFound, "no command %q", call.Tool)
	}
	values := call.Arguments
	rawjson.Each(c.defaults, func(name string, value json.RawMessage) bool {
		if _, given := rawjson.Get(values, name); !given {
			values = rawjson.Set(values, name, value)
		}
		return true
	})
	args, err := c.template.expand(values)
	if err != nil {
		return nil, err
	}
	stdin, _ := rawjson.GetText(values, c.Stdin)
	done := make(chan struct{})
	defer close(done)
	go report(done, call.Progress)
	ended, err := c.run(ctx, args, stdin)
	if err != nil {
		return nil, err
	}
	return c.result(ended)
}

// report tells the caller from time to time that the program runs.
func report(done <-chan struct{}, progress func(done, total float64, message string)) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-done:
			return
		case <-tick.C:
			progress(float64(n), 0, "running for "+(time.Duration(n)*progressInterval).String())
		}
	}
}

// result is the result of a program that has ended.
func (c *command) result(e outcome) (json.RawMessage, error) {
	text, cut := strings.ToValidUTF8(string(e.stdout.data), "\uFFFD"), e.stdout.cut
	if e.status != 0 {
		said := strings.TrimSpace(strings.ToValidUTF8(string(e.stderr.data), "\uFFFD") + "\n" + text + e.refused())
		return tool.Failed(strings.TrimSpace(c.template.program + " exited with status " + strconv.Itoa(e.status) + "\n" + said)).Raw, nil
	}
	switch c.Output {
	case api.OutputLines:
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			lines = []string{}
		}
		result, err := tool.Output(text, map[string]any{"lines": lines, "truncated": cut})
		return result.Raw, err
	case api.OutputJSON:
		return c.jsonResult([]byte(text), cut)
	}
	if cut {
		text += "\n[the output is longer than " + strconv.Itoa(c.MaxBytes) + " bytes; the rest was cut off]"
	}
	result, err := tool.Output(text, nil)
	return result.Raw, err
}

func (c *command) jsonResult(text []byte, cut bool) (json.RawMessage, error) {
	if problem := rawjson.Valid(text); problem != nil || cut {
		what := "the output is not JSON"
		if cut {
			what = "the output is longer than " + strconv.Itoa(c.MaxBytes) + " bytes"
		}
		return tool.Failed(what + ":\n" + string(text)).Raw, nil
	}
	var data any
	if rawjson.IsObject(text) {
		data = json.RawMessage(text)
	}
	result, err := tool.Output(strings.TrimSpace(string(text)), data)
	return result.Raw, err
}

// inferred are the schemas of params that the configuration does not describe.
var inferred = map[kind]json.RawMessage{
	one:       json.RawMessage(`{"type":"string"}`),
	many:      json.RawMessage(`{"type":"array","items":{"type":"string"}}`),
	condition: json.RawMessage(`{"type":"boolean"}`),
}

// inputSchema returns the schema of the arguments, and the defaults among them.
func inputSchema(c api.CommandTool, t *template) (schema, defaults json.RawMessage, err error) {
	properties, required := json.RawMessage("{}"), []string{}
	add := func(name string, own json.RawMessage, needed bool) {
		if _, known := rawjson.Get(properties, name); !known {
			if given, ok := rawjson.Get(c.Params, name); ok {
				own = given
			}
			properties = rawjson.Set(properties, name, own)
			value, has := rawjson.Get(own, "default")
			if has {
				defaults = rawjson.Set(defaults, name, value)
			}
			if needed && !has {
				required = append(required, name)
			}
		}
	}
	t.params(func(p part, optional bool) {
		if !optional && p.kind != many {
			add(p.param, inferred[p.kind], true)
		}
	})
	t.params(func(p part, _ bool) { add(p.param, inferred[p.kind], false) })
	if c.Stdin != "" {
		add(c.Stdin, inferred[one], true)
	}
	rawjson.Each(c.Params, func(name string, _ json.RawMessage) bool {
		if _, used := rawjson.Get(properties, name); !used {
			err = fault.New(fault.Config, "params.%s: no argument uses it", name).WithHint("write {{%s}} where its value belongs", name)
		}
		return err == nil
	})
	schema = rawjson.Set(json.RawMessage(`{"type":"object"}`), "properties", properties)
	if len(required) > 0 {
		names, _ := json.Marshal(required) // texts always encode
		schema = rawjson.Set(schema, "required", names)
	}
	return rawjson.Set(schema, "additionalProperties", json.RawMessage("false")), defaults, err
}

// linesSchema is the schema of the result of a command whose output is lines.
const linesSchema = `{"type":"object","properties":{"lines":{"type":"array","items":{"type":"string"}},"truncated":{"type":"boolean","description":"true if the output was longer"}},"required":["lines","truncated"]}`

// definition returns the tool as in tools/list.
func definition(name string, c api.CommandTool, input json.RawMessage) json.RawMessage {
	tell := rawjson.SetText(nil, "name", name)
	tell = rawjson.SetText(tell, "description", c.Description)
	tell = rawjson.Set(tell, "inputSchema", input)
	if c.Output == api.OutputLines {
		tell = rawjson.Set(tell, "outputSchema", json.RawMessage(linesSchema))
	}
	hints, _ := json.Marshal(tool.Hints{ReadOnly: c.ReadOnly, Idempotent: c.Idempotent, NonDestructive: c.ReadOnly}.Annotations()) // it always encodes
	return rawjson.Set(tell, "annotations", hints)
}

// maxErrors is how much of the standard error of a program is kept.
const maxErrors = 16 << 10

// outcome is how a program ended.
type outcome struct {
	stdout, stderr head
	status         int
	refusals       []profile.Refusal
}

// run runs the program to its end, or until its timeout or the end of ctx, which end the
// processes that it started, too.
func (c *command) run(ctx context.Context, args []string, stdin string) (e outcome, err error) {
	program := c.template.program
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fault.New(fault.Timeout, "run %s: it took longer than %s", program, c.Timeout))
	defer cancel()
	e.stdout.left, e.stderr.left = c.MaxBytes, maxErrors
	child, err := c.command(ctx, args)
	if err != nil {
		return e, err
	}
	child.Stdin, child.Stdout, child.Stderr = strings.NewReader(stdin), &e.stdout, &e.stderr
	var refused sync.Mutex
	child.Refused = func(r profile.Refusal) {
		refused.Lock()
		defer refused.Unlock()
		e.refusals = append(e.refusals, r)
	}
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case errors.As(err, &exit):
		e.status = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // it ended, and left a process behind that holds its output
	case err != nil:
		return e, fault.Wrap(fault.Unavailable, err, "run %s", program).WithHint("%s", fault.HintOf(err))
	}
	return e, nil
}

// command is the program in its sandbox, ready to be started.
func (c *command) command(ctx context.Context, args []string) (*launch.Command, error) {
	path, err := c.find()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", c.template.program)
	}
	env := []string{}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	child, err := c.launcher.CommandContext(ctx, c.Sandbox, launch.Program{Path: path, Args: append([]string{c.template.program}, args...), Env: env, Dir: c.Dir})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", c.template.program).WithHint("%s", fault.HintOf(err))
	}
	endWithChildren(child.Cmd)
	return child, nil
}

// find is the path of the program. That of a container is in its image, and a relative
// one begins at the folder that it runs in.
func (c *command) find() (string, error) {
	program := c.template.program
	if _, _, container := c.Sandbox.Level.Container(); container {
		return program, nil
	}
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		absolute, err := filepath.Abs(filepath.Join(c.Dir, program))
		if err != nil {
			return "", err
		}
		program = absolute
	}
	return exec.LookPath(program)
}

// refused says what the sandbox refused, one line each.
func (e outcome) refused() string {
	var lines strings.Builder
	for _, r := range e.refusals {
		lines.WriteString("\nsandbox: " + r.String())
		if r.Allow != "" {
			lines.WriteString("; to allow it: " + r.Allow)
		}
	}
	return lines.String()
}

// head stores the beginning of what is written to it.
type head struct {
	data []byte
	left int
	cut  bool // there was more
}

func (h *head) Write(p []byte) (int, error) {
	keep := p[:min(len(p), h.left)]
	h.left -= len(keep)
	h.data = append(h.data, keep...)
	h.cut = h.cut || len(keep) < len(p)
	return len(p), nil
}
