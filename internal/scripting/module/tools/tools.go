// Package tools is the tools module of scripts: it finds and describes tools, and
// manages upstream servers.
package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed tools.md
var page string

//go:embed prelude.js
var preludeJS string

// Module is the global tools.
func Module() host.Module {
	return host.Module{Name: "tools", Page: page, JS: preludeJS, Funcs: []host.Func{
		{Name: "search", Kind: host.Read, Effect: search},
		{Name: "describe", Kind: host.Read, Effect: describe},
		{Name: "mcp_add", Kind: host.Idempotent, Effect: add},
		{Name: "mcp_remove", Kind: host.Idempotent, Effect: remove},
		{Name: "mcp_status", Kind: host.Read, Effect: status},
		{Name: "mcp_list", Kind: host.Read, Effect: list},
		{Name: "mcp_call", Kind: host.Idempotent, Starts: true, Effect: startCall, Check: checkCall},
		{Name: "mcp_result", Kind: host.Read, Effect: result},
		{Name: "alias_tool", Kind: host.Idempotent, Effect: aliasTool},
		{Name: "set_tool_priority", Kind: host.Idempotent, Effect: setPriority},
	}}
}

func add(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if w.Upstreams == nil {
		return nil, noUpstreams(args)
	}
	if _, table := args.At(2).(json.RawMessage); table {
		return nil, addCommand(ctx, w, name, args)
	}
	url, err := args.String(2)
	if err != nil {
		return nil, err
	}
	return nil, w.Upstreams.Add(ctx, name, url)
}

// addCommand adds a server that is a program, if that is allowed.
func addCommand(ctx context.Context, w *host.Services, name string, args host.Args) error {
	var want struct {
		host.Command
		URL string `json:"url"`
	}
	if err := args.Decode(2, &want); err != nil {
		return err
	}
	if want.URL != "" {
		return w.Upstreams.Add(ctx, name, want.URL)
	}
	commander, ok := w.Upstreams.(host.Commander)
	if !ok {
		return fault.New(fault.Denied, "%s: only startup.lua may add programs", args.Func).
			WithHint("add them in luanette.toml, in startup.lua or on the command line")
	}
	if want.Command.Command == "" {
		return fault.New(fault.InvalidParams, "bad argument #2 to '%s' (no command in the table)", args.Func).
			WithHint("give a url, or a table with command and args")
	}
	return commander.AddCommand(ctx, name, want.Command)
}

func remove(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if w.Upstreams == nil {
		return nil, noUpstreams(args)
	}
	removed, err := w.Upstreams.Remove(ctx, name)
	return []host.Value{removed}, err
}

func status(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil || w.Upstreams == nil {
		return []host.Value{nil}, err
	}
	who := principal.Of(ctx)
	found, ok := w.Upstreams.Status(who.Namespace(name, func(space string) bool {
		_, there := w.Upstreams.Status(space)
		return there
	}))
	if !ok || !who.CanSee(found.Name, "") {
		return []host.Value{nil}, nil
	}
	found.Name = who.NameOf(found.Name)
	table, err := host.Table(found)
	return []host.Value{table}, err
}

func list(ctx context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	all := []host.UpstreamStatus{}
	if w.Upstreams != nil {
		all = append(all, seen(principal.Of(ctx), w.Upstreams.List())...)
	}
	table, err := host.Table(all)
	return []host.Value{table}, err
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
