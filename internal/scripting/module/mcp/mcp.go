// Package mcp is the mcp module of scripts: every tool of every upstream as
// mcp.<namespace>.<tool>{…}. Tools are bound when they are used, so that ten thousand
// tools cost a script nothing.
package mcp

import (
	"context"
	"embed"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed mcp.md prelude.lua
var files embed.FS

// Module is the global mcp.
func Module() host.Module {
	return host.Module{Name: "mcp", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "call", Effect: call, Check: Check, Classify: classify, Waits: true},
		{Name: "has", Kind: host.Read, Effect: has, Inspected: host.Answers(true)},
		{Name: "namespaces", Kind: host.Read, Effect: host.Bind(namespaces), Inspected: host.Answers(json.RawMessage("[]"))},
		{Name: "tools", Kind: host.Read, Effect: host.Bind(tools), Inspected: host.Answers(json.RawMessage("[]"))},
	}}
}

// call(namespace, tool, arguments) calls a tool and returns its result as a value.
func call(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	asked, err := callAt(w, args)
	if err != nil {
		return nil, err
	}
	ref := asked.Ref
	result, err := w.Tools.Call(ctx, asked)
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

// callAt reads the arguments of call.
func callAt(w *host.Services, args host.Args) (tool.Call, error) {
	ref, err := refAt(args)
	if err != nil {
		return tool.Call{}, err
	}
	if w.Tools == nil {
		return tool.Call{}, fault.New(fault.Unavailable, "%s: this run has no tools", ref)
	}
	arguments, err := args.Table(3)
	if err != nil {
		return tool.Call{}, fault.New(fault.InvalidParams, "%s takes one table of named arguments", ref).
			WithHint("write %s { name = value }", ref.ScriptPath())
	}
	return tool.Call{Ref: ref, Args: arguments, Caller: within(w, ref)}, nil
}

// Check refuses what call would refuse before the tool is asked: a tool that does not
// exist, a policy, arguments that break the schema. args are those of call.
func Check(ctx context.Context, w *host.Services, args host.Args) error {
	asked, err := callAt(w, args)
	if err != nil {
		return err
	}
	checker, ok := w.Tools.(interface {
		Check(ctx context.Context, call tool.Call) error
	})
	if !ok {
		return nil
	}
	if err := checker.Check(ctx, asked); err != nil {
		return err
	}
	if target, arguments, ok := host.RelayedCall(args); ok { // the tool that call_tool calls
		if asked.Ref.Name == tool.CallToolRead {
			ctx = tool.OnlyReading(ctx)
		}
		return checker.Check(ctx, tool.Call{Ref: target, Args: arguments, Caller: asked.Caller})
	}
	return nil
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
// only a part of the script's.
func within(w *host.Services, ref tool.Ref) *tool.Caller {
	caller := w.Caller
	if caller == nil || caller.Progress == nil {
		return caller
	}
	inner := *caller
	inner.Progress = nil
	if w.ToolProgress != nil {
		inner.Progress = func(p tool.Progress) { w.ToolProgress(ref, p) }
	}
	return &inner
}

// toolFailure is the error of a tool that ran and failed.
func toolFailure(ref tool.Ref, view tool.View) error {
	text := view.Text()
	if text == "" {
		text = string(view.Structured)
	}
	failure := fault.New(fault.Upstream, "%s: %s", ref, text)
	if len(view.Structured) > 0 {
		failure.Details = view.Structured
	}
	if ref.Space != "" {
		return failure
	}
	// A tool of our own says what kind of error it is. The error of one that has refused the
	// call is as a preview has it.
	var own fault.Error
	raw, _ := rawjson.Get(view.Meta, tool.ErrorKey)
	if json.Unmarshal(raw, &own) != nil || own.Code == "" {
		return failure
	}
	if failure.Code = own.Code; strings.HasPrefix(text, string(own.Code)+": "+own.Msg) {
		return &own
	}
	return failure
}

// classify uses the tool's own hints.
func classify(ctx context.Context, w *host.Services, args host.Args) host.Kind {
	if w.Tools == nil {
		return host.Write
	}
	info, _ := awaited(ctx, w, host.CalledTool(args))
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

// awaited is find for a tool whose upstream may not have listed its tools yet.
func awaited(ctx context.Context, w *host.Services, ref tool.Ref) (tool.Info, bool) {
	info, ok := find(ctx, w.Tools, ref)
	if ok || w.AwaitTools == nil || !unlisted(ctx, w.Tools, ref.Space) {
		return info, ok
	}
	w.AwaitTools(ctx, ref.Space)
	return find(ctx, w.Tools, ref)
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
		name, ok := spelled(ctx, w, ref)
		switch {
		case ok && hasPages(ctx, w.Tools, tool.Ref{Space: ref.Space, Name: name}):
			return []host.Value{true, name, true}, nil
		case ok && name != ref.Name: // the name to call it by
			return []host.Value{true, name}, nil
		}
		return []host.Value{ok}, nil
	}
	if f, ok := w.Tools.(interface {
		Exists(ctx context.Context, namespace string) bool
	}); ok && f.Exists(ctx, space) { // also if all its tools would be refused: the refusal says more than nil
		return []host.Value{true}, nil
	}
	if unlisted(ctx, w.Tools, space) {
		return []host.Value{true}, nil
	}
	infos, err := inSpace(ctx, w.Tools, space)
	return []host.Value{len(infos) > 0}, err
}

// hasPages reports whether a tool lists something page by page, as those of APIs do: it
// takes the next_page_token of its results as page_token.
func hasPages(ctx context.Context, source tool.Source, ref tool.Ref) bool {
	info, _ := find(ctx, source, ref)
	properties, _ := rawjson.Get(info.Input, "properties")
	_, ok := rawjson.Get(properties, "page_token")
	return ok
}

// spelled returns the name of a tool: as given, or the only one in its namespace that is
// written so as an identifier (get_sum for get-sum). A namespace whose tools are not
// known, as of an upstream that is disconnected, may have any: the call says what is
// wrong.
func spelled(ctx context.Context, w *host.Services, ref tool.Ref) (name string, ok bool) {
	source := w.Tools
	if _, ok := awaited(ctx, w, ref); ok || ref.Space == "" {
		return ref.Name, ok
	}
	infos, err := inSpace(ctx, source, ref.Space)
	if err != nil {
		return "", false
	}
	for _, info := range infos {
		if tool.Identifier(info.Name) != ref.Name {
			continue
		}
		if name != "" {
			return "", false // several are written so
		}
		name = info.Name
	}
	if name == "" && unlisted(ctx, source, ref.Space) {
		return ref.Name, true
	}
	return name, name != ""
}

// unlisted reports whether a namespace exists of which no tools are known.
func unlisted(ctx context.Context, source tool.Source, space string) bool {
	f, ok := source.(finder)
	if !ok || space == "" {
		return false
	}
	infos, ok := f.In(ctx, space)
	return ok && len(infos) == 0
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
func namespaces(ctx context.Context, w *host.Services) (names []string, err error) {
	if all, ok := w.Tools.(interface {
		Namespaces(ctx context.Context) []string
	}); ok { // also those whose tools are not known yet
		return all.Namespaces(ctx), nil
	} else if w.Tools != nil {
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
	return names, nil
}

// tools(namespace) lists a namespace's tools with their descriptions.
func tools(ctx context.Context, w *host.Services, space string) (list []listed, err error) {
	if w.Tools == nil {
		return nil, nil
	}
	awaited(ctx, w, tool.Ref{Space: space})
	infos, err := inSpace(ctx, w.Tools, space)
	for _, info := range infos {
		list = append(list, listed{info.Name, info.Description})
	}
	return list, err
}

// listed is a tool as the list has it.
type listed struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func refAt(args host.Args) (tool.Ref, error) {
	space, err := args.String(1)
	if err != nil {
		return tool.Ref{}, err
	}
	name, err := args.String(2)
	return tool.Ref{Space: space, Name: name}, err
}
