// Package command offers programs of this machine as tools. They come only from the local
// configuration, and no shell is involved: each argument is a template of its own.
package command

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/sandbox/launch"
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
