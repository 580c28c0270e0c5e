package tools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/scripting/host"
)

// aliasTool(alias, "namespace:tool") gives a tool another name.
func aliasTool(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	alias, err := args.String(1)
	if err != nil {
		return nil, err
	}
	target, err := args.String(2)
	if err != nil {
		return nil, err
	}
	arranger, err := arrangerOf(w, args)
	if err != nil {
		return nil, err
	}
	namespace, name := split(target)
	if name == "" {
		return nil, fault.New(fault.InvalidParams, "bad argument #2 to '%s' (%q names no tool)", args.Func, target).
			WithHint("write namespace:tool, such as \"files:read_file\"")
	}
	return nil, arranger.Alias(ctx, namespace, alias, name)
}

// preferred is the priority of a tool whose server was named as preferred.
const preferred = 10

// setPriority{ key = priority } sets the priority of a namespace or a "namespace:tool",
// or the preferred namespace of a tool.
func setPriority(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	wanted, err := args.Table(1)
	if err != nil || !rawjson.IsObject(wanted) {
		return nil, fault.New(fault.InvalidParams, "bad argument #1 to '%s' (a table expected)", args.Func).
			WithHint("write tools.set_tool_priority { files = 10, [\"git:status\"] = 5, search = \"web\" }")
	}
	arranger, err := arrangerOf(w, args)
	if err != nil {
		return nil, err
	}
	rawjson.Each(wanted, func(key string, value json.RawMessage) bool {
		err = prefer(ctx, arranger, args, key, value)
		return err == nil
	})
	return nil, err
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
