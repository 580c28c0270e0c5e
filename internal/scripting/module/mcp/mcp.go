// Package mcp is the mcp module of scripts: every tool of every upstream as
// mcp.<namespace>.<tool>{…}. Tools are bound when they are used, so that ten thousand
// tools cost a script nothing.
package mcp

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed mcp.md
var page string

//go:embed prelude.lua
var prelude string

// Module is the global mcp.
func Module() host.Module {
	return host.Module{Name: "mcp", Page: page, Lua: prelude, Funcs: []host.Func{
		{Name: "call", Effect: call, Classify: classify, Waits: true},
		{Name: "has", Kind: host.Read, Effect: has},
		{Name: "namespaces", Kind: host.Read, Effect: namespaces},
		{Name: "tools", Kind: host.Read, Effect: tools},
	}}
}

// call(namespace, tool, arguments) calls a tool and returns its result as a value.
func call(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	ref, err := refAt(args)
	if err != nil {
		return nil, err
	}
	if w.Tools == nil {
		return nil, fault.New(fault.Unavailable, "%s: this run has no tools", ref)
	}
	arguments, err := args.Table(3)
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "%s takes one table of named arguments", ref).
			WithHint("write mcp.%s { name = value }", ref)
	}
	result, err := w.Tools.Call(ctx, tool.Call{Ref: ref, Args: arguments, Caller: within(w.Caller)})
	if err != nil {
		return nil, err
	}
	if content := structured(result); content != nil {
		return []host.Value{content}, nil
	}
	view, err := result.View()
	if err != nil {
		return nil, err
	}
	if view.IsError {
		return nil, toolFailure(ref, view)
	}
	return []host.Value{json.RawMessage(view.Value())}, nil
}

// structured returns the structured content of a result without parsing the rest; nil if
// there is none or the result is an error.
func structured(result tool.Result) json.RawMessage {
	var found [2]json.RawMessage
	rawjson.Pick(result.Raw, []string{"structuredContent", "isError"}, found[:])
	content, isError := found[0], found[1]
	if isError != nil && string(isError) != "false" || rawjson.IsNull(content) {
		return nil
	}
	return content
}

// within returns the caller for a tool called by a script: the progress of the tool is
// not that of the script.
func within(caller *tool.Caller) *tool.Caller {
	if caller == nil || caller.Progress == nil {
		return caller
	}
	inner := *caller
	inner.Progress = nil
	return &inner
}

// toolFailure is the error of a tool that ran and failed.
func toolFailure(ref tool.Ref, view tool.View) error {
	text := view.Text()
	if text == "" {
		text = string(view.Structured)
	}
	return fault.New(fault.Upstream, "%s: %s", ref, text)
}

// classify uses the tool's own hints.
func classify(w *host.Services, args host.Args) host.Kind {
	if w.Tools == nil {
		return host.Write
	}
	info, _ := find(context.Background(), w.Tools, host.CalledTool(args))
	hints := info.Hints
	switch {
	case info.RunsScript:
		return host.Nested
	case hints.ReadOnly:
		return host.Read
	case hints.Idempotent:
		return host.Idempotent
	default:
		return host.Write
	}
}

// finder is a source that finds one tool or namespace without listing all.
type finder interface {
	Find(ctx context.Context, ref tool.Ref) (tool.Info, bool)
	In(ctx context.Context, namespace string) ([]tool.Info, bool)
}

func find(ctx context.Context, source tool.Source, ref tool.Ref) (tool.Info, bool) {
	if f, ok := source.(finder); ok {
		return f.Find(ctx, ref)
	}
	infos, err := source.Tools(ctx)
	if err != nil {
		return tool.Info{}, false
	}
	for _, info := range infos {
		if info.Ref == ref {
			return info, true
		}
	}
	return tool.Info{}, false
}

// has(namespace, tool?) reports whether there is such a namespace or tool.
func has(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	space, err := args.String(1)
	if err != nil || w.Tools == nil {
		return []host.Value{false}, err
	}
	if args.At(2) != nil {
		ref, err := refAt(args)
		if err != nil {
			return nil, err
		}
		_, ok := find(ctx, w.Tools, ref)
		return []host.Value{ok}, nil
	}
	if f, ok := w.Tools.(interface {
		Exists(ctx context.Context, namespace string) bool
	}); ok { // also if all its tools would be refused: the refusal says more than nil
		return []host.Value{f.Exists(ctx, space)}, nil
	}
	infos, err := inSpace(ctx, w.Tools, space)
	return []host.Value{len(infos) > 0}, err
}

// inSpace lists the tools of a namespace.
func inSpace(ctx context.Context, source tool.Source, space string) ([]tool.Info, error) {
	if f, ok := source.(finder); ok {
		infos, _ := f.In(ctx, space)
		return infos, nil
	}
	all, err := source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var infos []tool.Info
	for _, info := range all {
		if info.Space == space {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// namespaces() lists the namespaces.
func namespaces(ctx context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	names := []string{}
	if w.Tools != nil {
		infos, err := w.Tools.Tools(ctx)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			if info.Space != "" && (len(names) == 0 || names[len(names)-1] != info.Space) {
				names = append(names, info.Space)
			}
		}
	}
	table, err := host.Table(names)
	return []host.Value{table}, err
}

// tools(namespace) lists a namespace's tools with their descriptions.
func tools(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	space, err := args.String(1)
	if err != nil {
		return nil, err
	}
	type entry struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	list := []entry{}
	if w.Tools != nil {
		infos, err := inSpace(ctx, w.Tools, space)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			list = append(list, entry{info.Name, info.Description})
		}
	}
	table, err := host.Table(list)
	return []host.Value{table}, err
}

func refAt(args host.Args) (tool.Ref, error) {
	space, err := args.String(1)
	if err != nil {
		return tool.Ref{}, err
	}
	name, err := args.String(2)
	return tool.Ref{Space: space, Name: name}, err
}
