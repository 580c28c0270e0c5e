package tools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// search(query, options?) calls search_tools and returns the list of tools.
func search(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	query, err := args.String(1)
	if err != nil {
		return nil, err
	}
	var options struct {
		Namespace string `json:"namespace,omitempty"`
		Limit     int    `json:"limit,omitempty"`
	}
	if err := args.Decode(2, &options); err != nil {
		return nil, err
	}
	var found struct {
		Tools json.RawMessage `json:"tools"`
	}
	err = ask(ctx, w, args, "search_tools", map[string]any{
		"query": query, "namespace": options.Namespace, "limit": options.Limit,
	}, &found)
	return []host.Value{found.Tools}, err
}

// describe(names, format?) calls get_tool_definitions and returns declarations as text,
// or for "json" a list of definitions.
func describe(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	names, err := namesAt(args)
	if err != nil {
		return nil, err
	}
	format, err := args.OptString(2, "lua")
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
	if err := ask(ctx, w, args, "get_tool_definitions", map[string]any{"names": names, "format": format}, &found); err != nil {
		return nil, err
	}
	if len(found.Unknown) > 0 {
		missing := fault.New(fault.ToolNotFound, "no tool %q", found.Unknown[0].Name)
		if close := found.Unknown[0].DidYouMean; len(close) > 0 {
			return nil, missing.WithHint("did you mean %s?", strings.Join(close, " or "))
		}
		return nil, missing.WithHint("tools.search finds tools by what they do")
	}
	if format == "json" {
		return []host.Value{found.Tools}, nil
	}
	return []host.Value{found.Declarations}, nil
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
