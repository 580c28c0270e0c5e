// Package tools is the tools module of scripts: it finds and describes tools, and
// manages upstream servers.
package tools

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/mcp"
)

//go:embed tools.md prelude.js
var files embed.FS

// Module is the global tools.
func Module() host.Module {
	return host.Module{Name: "tools", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "search", Kind: host.Read, Effect: host.Bind(search)},
		{Name: "describe", Kind: host.Read, Effect: host.Bind(describe)},
		{Name: "mcp_add", Kind: host.Idempotent, Effect: host.Bind(add), Check: checkAdd, Action: func(args host.Args) string {
			return fmt.Sprintf("connect %v to %s", args.At(1), host.Shown(args.At(2)))
		}},
		{Name: "mcp_remove", Kind: host.Idempotent, Effect: host.Bind(remove), Mock: "true", Action: func(args host.Args) string {
			return fmt.Sprintf("disconnect %v", args.At(1))
		}},
		{Name: "mcp_status", Kind: host.Read, Effect: host.Bind(status)},
		{Name: "mcp_list", Kind: host.Read, Effect: host.Bind(list)},
		{Name: "mcp_call", Kind: host.Idempotent, Starts: true, Effect: host.Bind(startCall), Check: checkCall, Action: func(args host.Args) string {
			return "start a job that calls " + host.CalledTool(args).String()
		}},
		{Name: "mcp_result", Kind: host.Read, Effect: host.Bind(result)},
		{Name: "alias_tool", Kind: host.Idempotent, Effect: host.Bind(aliasTool)},
		{Name: "set_tool_priority", Kind: host.Idempotent, Effect: host.Bind(setPriority)},
	}}
}

func add(ctx context.Context, w *host.Services, args host.Args, name string) error {
	url, program, err := target(w, args)
	if err != nil {
		return err
	}
	if commander, ok := w.Upstreams.(host.Commander); ok && program.Command != "" {
		return commander.AddCommand(ctx, name, program)
	}
	return w.Upstreams.Add(ctx, name, url)
}

// checkAdd returns why add would refuse.
func checkAdd(ctx context.Context, w *host.Services, args host.Args) error {
	name, err := args.String(1)
	if err != nil {
		return err
	}
	url, program, err := target(w, args)
	if err != nil || program.Command != "" {
		return err
	}
	return w.Upstreams.Check(ctx, name, url)
}

// target returns the URL of the server to add, or its program, if that is allowed.
func target(w *host.Services, args host.Args) (url string, program host.Command, err error) {
	if w.Upstreams == nil {
		return "", program, noUpstreams(args)
	}
	if _, table := args.At(2).(json.RawMessage); !table {
		url, err = args.String(2)
		return url, program, err
	}
	var want struct {
		host.Command
		URL string `json:"url"`
	}
	if err := args.Decode(2, &want); err != nil || want.URL != "" {
		return want.URL, program, err
	}
	switch _, ok := w.Upstreams.(host.Commander); {
	case !ok:
		err = fault.New(fault.Denied, "%s: only startup.lua may add programs", args.Func).
			WithHint("add them in luanette.toml, in startup.lua or on the command line")
	case want.Command.Command == "":
		err = fault.New(fault.InvalidParams, "bad argument #2 to '%s' (no command in the table)", args.Func).
			WithHint("give a url, or a table with command and args")
	}
	return "", want.Command, err
}

func remove(ctx context.Context, w *host.Services, args host.Args, name string) (bool, error) {
	if w.Upstreams == nil {
		return false, noUpstreams(args)
	}
	return w.Upstreams.Remove(ctx, name)
}

func status(ctx context.Context, w *host.Services, name string) *host.UpstreamStatus {
	if w.Upstreams == nil {
		return nil
	}
	who := principal.Of(ctx)
	found, ok := w.Upstreams.Status(who.Namespace(name, func(space string) bool {
		_, there := w.Upstreams.Status(space)
		return there
	}))
	if !ok || !who.CanSee(found.Name, "") {
		return nil
	}
	found.Name = who.NameOf(found.Name)
	return &found
}

func list(ctx context.Context, w *host.Services) []host.UpstreamStatus {
	if w.Upstreams == nil {
		return nil
	}
	return seen(principal.Of(ctx), w.Upstreams.List())
}

// seen returns the upstreams that the caller can see, by the caller's names.
func seen(who principal.Principal, all []host.UpstreamStatus) []host.UpstreamStatus {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	visible := who.Visible(names)
	all = slices.DeleteFunc(all, func(s host.UpstreamStatus) bool { return !slices.Contains(visible, s.Name) })
	for i := range all {
		all[i].Name = who.NameOf(all[i].Name)
	}
	return all
}

func noUpstreams(args host.Args) error {
	return fault.New(fault.Unavailable, "%s: this run cannot change upstreams", args.Func)
}

// callSource is the script of a job that calls a tool.
const callSource = `function main(call)
  return mcp.call(call.server, call.tool, call.arguments)
end
`

// startCall(server, tool, args?) starts a job that calls a tool, and returns its id.
func startCall(ctx context.Context, w *host.Services, args host.Args) (string, error) {
	if err := checkCall(ctx, w, args); err != nil {
		return "", err
	}
	arguments, err := args.Table(3)
	if err != nil {
		return "", err
	}
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	ref := host.CalledTool(args)
	params, err := json.Marshal(map[string]any{"server": args.At(1), "tool": args.At(2), "arguments": arguments})
	if err != nil {
		return "", fault.Wrap(fault.InvalidParams, err, "%s", args.Func)
	}
	return w.Jobs.Start(ctx, host.NewJob{Name: ref.String(), Source: callSource, Params: params, Tags: []string{"mcp_call"}, Token: w.Token(ctx)})
}

// checkCall refuses what the job would refuse.
func checkCall(ctx context.Context, w *host.Services, args host.Args) error {
	if w.Jobs == nil {
		return errNoJobs(args)
	}
	return mcp.Check(ctx, w, args)
}

func errNoJobs(args host.Args) error {
	return fault.New(fault.Unavailable, "%s: no jobs run in this process", args.Func).
		WithHint("run the script on a server; within a run, parallel.spawn makes calls concurrently")
}

// result(id) returns the value and the state of a job.
func result(ctx context.Context, w *host.Services, args host.Args, id string) (value host.Value, state string, err error) {
	if w.Jobs == nil {
		return nil, "", errNoJobs(args)
	}
	found, err := w.Jobs.Result(ctx, id)
	switch {
	case found.Error != "":
		return found.Error, found.State, err
	case len(found.Value) > 0:
		return found.Value, found.State, err
	}
	return nil, found.State, err
}

// search(query, options?) calls search_tools and returns the list of tools.
func search(ctx context.Context, w *host.Services, args host.Args, query string, options struct {
	Namespace string `json:"namespace,omitempty"`
	Limit     int    `json:"limit,omitempty"`
},
) (json.RawMessage, error) {
	var found struct {
		Tools json.RawMessage `json:"tools"`
	}
	err := ask(ctx, w, args, "search_tools", map[string]any{
		"query": query, "namespace": options.Namespace, "limit": options.Limit,
	}, &found)
	return found.Tools, err
}

// describe(names, format?) calls get_tool_definitions and returns declarations as text,
// or for "json" a list of definitions.
func describe(ctx context.Context, w *host.Services, args host.Args, _ host.Value, format *string) (host.Value, error) {
	names, err := namesAt(args)
	if err != nil {
		return nil, err
	}
	var found struct {
		Tools        json.RawMessage `json:"tools"`
		Declarations string          `json:"declarations"`
		Unknown      []struct {
			Name       string   `json:"name"`
			DidYouMean []string `json:"did_you_mean"`
		} `json:"unknown"`
	}
	if err := ask(ctx, w, args, "get_tool_definitions", map[string]any{"names": names, "format": host.Or(format, "lua")}, &found); err != nil {
		return nil, err
	}
	if len(found.Unknown) > 0 {
		missing := fault.New(fault.ToolNotFound, "no tool %q", found.Unknown[0].Name)
		if close := found.Unknown[0].DidYouMean; len(close) > 0 {
			return nil, missing.WithHint("did you mean %s?", strings.Join(close, " or "))
		}
		return nil, missing.WithHint("tools.search finds tools by what they do")
	}
	if host.Or(format, "lua") == "json" {
		return found.Tools, nil
	}
	return found.Declarations, nil
}

// namesAt reads one name or a list of them.
func namesAt(args host.Args) ([]string, error) {
	if _, isTable := args.At(1).(json.RawMessage); !isTable {
		name, err := args.String(1)
		return []string{name}, err
	}
	var names []string
	return names, args.Decode(1, &names)
}

// ask calls a built-in tool. Empty arguments are omitted.
func ask(ctx context.Context, w *host.Services, args host.Args, name string, arguments map[string]any, into any) error {
	if w.Tools == nil {
		return fault.New(fault.Unavailable, "%s: this run has no tools", args.Func)
	}
	for key, value := range arguments {
		if value == "" && key != "query" || value == 0 {
			delete(arguments, key)
		}
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "%s", args.Func)
	}
	result, err := w.Tools.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: raw, Caller: w.Caller})
	if err != nil {
		return err
	}
	view, err := result.View()
	if err != nil {
		return err
	}
	if view.IsError {
		return fault.New(fault.InvalidParams, "%s: %s", args.Func, view.Text())
	}
	if err := json.Unmarshal(view.Structured, into); err != nil {
		return fault.Wrap(fault.Internal, err, "%s", args.Func)
	}
	return nil
}

// aliasTool(alias, "namespace:tool") gives a tool another name.
func aliasTool(ctx context.Context, w *host.Services, args host.Args, alias, target string) error {
	arranger, err := arrangerOf(w, args)
	if err != nil {
		return err
	}
	namespace, name := split(target)
	if name == "" {
		return fault.New(fault.InvalidParams, "bad argument #2 to '%s' (%q names no tool)", args.Func, target).
			WithHint("write namespace:tool, such as \"files:read_file\"")
	}
	return arranger.Alias(ctx, namespace, alias, name)
}

// preferred is the priority of a tool whose server was named as preferred.
const preferred = 10

// setPriority{ key = priority } sets the priority of a namespace or a "namespace:tool",
// or the preferred namespace of a tool.
func setPriority(ctx context.Context, w *host.Services, args host.Args) error {
	wanted, err := args.Table(1)
	if err != nil || !rawjson.IsObject(wanted) {
		return fault.New(fault.InvalidParams, "bad argument #1 to '%s' (a table expected)", args.Func).
			WithHint("write tools.set_tool_priority { files = 10, [\"git:status\"] = 5, search = \"web\" }")
	}
	arranger, err := arrangerOf(w, args)
	if err != nil {
		return err
	}
	rawjson.Each(wanted, func(key string, value json.RawMessage) bool {
		err = prefer(ctx, arranger, args, key, value)
		return err == nil
	})
	return err
}

func prefer(ctx context.Context, arranger host.ToolArranger, args host.Args, key string, value json.RawMessage) error {
	if namespace, ok := rawjson.Text(value); ok {
		return arranger.Prefer(ctx, namespace, key, preferred)
	}
	var priority int
	if json.Unmarshal(value, &priority) != nil {
		return fault.New(fault.InvalidParams, "bad argument #1 to '%s' (%s: %s is neither a whole number nor a namespace)", args.Func, key, value)
	}
	namespace, name := split(key)
	return arranger.Prefer(ctx, namespace, name, priority)
}

// split reads "namespace:tool" or "namespace.tool"; a namespace alone has no tool.
func split(text string) (namespace, name string) {
	at := strings.IndexAny(text, ":.")
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+1:]
}

func arrangerOf(w *host.Services, args host.Args) (host.ToolArranger, error) {
	arranger, ok := w.Upstreams.(host.ToolArranger)
	if !ok {
		return nil, fault.New(fault.Denied, "%s: only startup.lua may set aliases and priorities", args.Func).
			WithHint("set them in startup.lua, or in luanette.toml with aliases and priority")
	}
	return arranger, nil
}
