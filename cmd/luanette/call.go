package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
)

// callCommand is `luanette call`.
type callCommand struct {
	clientFlags
	Tool string   `arg:"" complete:"tool" help:"The tool, as NAMESPACE.TOOL."`
	Args []string `arg:"" optional:"" name:"key=value" help:"Arguments: key=value, or key:=JSON."`
	Raw  string   `name:"args" placeholder:"JSON" help:"All arguments as one JSON object; - reads it from standard input."`
}

// Help is shown by `luanette call --help`.
func (callCommand) Help() string {
	return `The tool's schema determines how a value is read: n=4 is a number if the argument
is a number, otherwise a string. key:=JSON passes JSON unchanged:
tags:='["a","b"]'.`
}

// Run calls the tool and prints its result.
func (c *callCommand) Run(ctx context.Context, proc *process) error {
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) error {
		arguments, err := c.arguments(ctx, proc, api)
		if err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, "call_tool", map[string]any{"name": c.Tool, "arguments": arguments})
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON || view.Text() == "" {
		err = printJSON(proc.Stdout, view.Value())
	} else {
		_, err = fmt.Fprintln(proc.Stdout, view.Text())
	}
	if err == nil && waits(view) {
		err = exitStatus(exitWaiting)
	}
	return err
}

// arguments merges --args and the pairs, which take precedence.
func (c *callCommand) arguments(ctx context.Context, proc *process, api client.Client) (map[string]json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if c.Raw != "" {
		text := []byte(c.Raw)
		if c.Raw == "-" {
			read, err := io.ReadAll(proc.Stdin)
			if err != nil {
				return nil, err
			}
			text = read
		}
		if err := json.Unmarshal(text, &arguments); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, err, "read --args").WithHint(`it must be a JSON object, such as {"n": 4}`)
		}
	}
	if len(c.Args) == 0 {
		return arguments, nil
	}
	types, err := argumentTypes(ctx, proc, api, c.Tool)
	if err != nil {
		return nil, err
	}
	for _, pair := range c.Args {
		key, value, err := commandline.Pair(pair, func(key string) string { return types[key] })
		if err != nil {
			return nil, err
		}
		arguments[key] = value
	}
	return arguments, nil
}

// argumentTypes returns the types in the tool's schema, without arguments that have
// several.
func argumentTypes(ctx context.Context, proc *process, api client.Client, name string) (map[string]string, error) {
	view, err := callTool(ctx, proc, api, "get_tool_definitions", map[string]any{"names": []string{name}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Tools []struct {
			Input struct {
				Properties map[string]struct{ Type any }
			} `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(view.Structured, &answer); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read definition of %s", name)
	}
	types := map[string]string{}
	for _, t := range answer.Tools {
		for key, property := range t.Input.Properties {
			types[key] = onlyType(property.Type)
		}
	}
	return types, nil
}

// onlyType is the type of a schema besides null; "" if there are several.
func onlyType(declared any) string {
	list, several := declared.([]any)
	if !several {
		list = []any{declared}
	}
	list = slices.DeleteFunc(list, func(kind any) bool { return kind == "null" })
	if len(list) != 1 {
		return ""
	}
	kind, _ := list[0].(string)
	return kind
}
