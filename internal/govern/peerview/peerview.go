// Package peerview shows one upstream at /mcp/NAME as the caller may see it.
package peerview

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Options are the parts that decide what is visible.
type Options struct {
	Catalog *catalog.Catalog
	Overlay *overlay.Source
	Pins    *pin.Guard
	// Transformed reports whether hooks of startup.lua change the definitions of tools.
	Transformed func() bool
}

// peer is one upstream as /mcp/NAME serves it: under its own names, without what the
// caller may not see. Its tool calls pass the same steps as all others.
type peer struct {
	hub.Peer
	name string
	Options
}

// New returns the view of an upstream.
func New(relayed hub.Peer, name string, o Options) hub.Peer { return peer{relayed, name, o} }

// Call relays the call of a tool.
func (p peer) Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error) {
	params, err := checkParams(wire.MethodToolsCall, params)
	if err != nil {
		return tool.Result{}, err
	}
	info, known := p.Peer.Find(ctx, call.Ref.Name)
	if !known {
		info.Ref = call.Ref
	}
	return p.Catalog.Relay(ctx, info, call, params, p.Peer)
}

// Find finds a tool that the caller may see.
func (p peer) Find(ctx context.Context, name string) (tool.Info, bool) {
	info, found := p.Peer.Find(ctx, name)
	who := principal.Of(ctx)
	if found && (who.Restricted() || !p.Catalog.ShowsAll(who)) && !p.Catalog.Shows(ctx, tool.Ref{Space: p.name, Name: name}) {
		return tool.Info{}, false
	}
	return info, found
}

// Request relays any other request, and removes from lists what the caller may not see.
func (p peer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	who := principal.Of(ctx)
	params, err := checkParams(method, params)
	if err != nil {
		return nil, err
	}
	if result, err := onlyTools(who, method); result != nil || err != nil {
		return result, err
	}
	if method == wire.MethodPromptsGet {
		name, _ := rawjson.GetText(params, "name")
		if err := p.checkPrompt(ctx, name); err != nil {
			return nil, err
		}
	}
	result, err := p.Peer.Request(ctx, method, params, caller)
	if err != nil {
		return nil, err
	}
	switch method {
	case wire.MethodToolsList:
		return p.filterTools(ctx, who, result), nil
	case wire.MethodPromptsList:
		return filterList(result, "prompts", func(item json.RawMessage) (json.RawMessage, bool) {
			return item, p.Pins.CheckDefinition(ctx, p.name, pin.Prompt, item) == nil
		}), nil
	default:
		return result, nil
	}
}

// onlyTools answers for a principal who may use some tools only: prompts and resources
// do not exist for it.
func onlyTools(who principal.Principal, method string) (json.RawMessage, error) {
	if len(who.Tools) == 0 {
		return nil, nil
	}
	switch method {
	case wire.MethodResourcesList, wire.MethodResourceTemplates, wire.MethodPromptsList:
		return json.RawMessage(`{"resources":[],"resourceTemplates":[],"prompts":[]}`), nil
	case wire.MethodToolsList, wire.MethodPing, wire.MethodSetLevel, wire.MethodUnsubscribe:
		return nil, nil
	default:
		return nil, fault.New(fault.Denied, "%s may use some tools only", who.Title())
	}
}

// checkParams refuses params that the upstream might read otherwise than we do when we
// decide by the tool's name: some servers take the first of two equal keys, or ignore
// case. Requests about tasks are not relayed: the upstream sees one client, so every
// caller would have the tasks of all. The hub has tasks of its own for them.
func checkParams(method string, params json.RawMessage) (json.RawMessage, error) {
	if strings.HasPrefix(method, "tasks/") {
		return nil, wire.Errorf(wire.CodeMethodNotFound, "method not found: %s", method)
	}
	if method != wire.MethodToolsCall && method != wire.MethodPromptsGet {
		return params, nil
	}
	var seen [2]bool
	twice := ""
	params = rawjson.DeleteFunc(params, func(key []byte) bool {
		for i, known := range checkedKeys {
			if bytes.EqualFold(key, known) {
				if seen[i] || !bytes.Equal(key, known) {
					twice = string(known)
				}
				seen[i] = true
			}
		}
		return bytes.EqualFold(key, taskKey)
	})
	if twice != "" {
		return nil, fault.New(fault.InvalidParams, "the params of %s are ambiguous: %s", method, twice).
			WithHint("write %s once, in lower case", twice)
	}
	return params, nil
}

// checkedKeys are the members of params that decisions depend on, and taskKey is the
// one that makes a call a task, which the call itself says.
var (
	checkedKeys = [2][]byte{[]byte("name"), []byte("arguments")}
	taskKey     = []byte("task")
)

// filterTools removes tools that are not approved, that hooks hide or that the caller
// may not see, and writes the others as the hooks want them.
func (p peer) filterTools(ctx context.Context, who principal.Principal, page json.RawMessage) json.RawMessage {
	transformed := p.Transformed()
	restricted := who.Restricted() || !p.Catalog.ShowsAll(who)
	return filterList(page, "tools", func(item json.RawMessage) (json.RawMessage, bool) {
		name, _ := rawjson.GetText(item, "name")
		ref := tool.Ref{Space: p.name, Name: name}
		if p.Pins.CheckDefinition(ctx, p.name, pin.Tool, item) != nil || p.Pins.CheckCall(ctx, ref) != nil {
			return nil, false
		}
		if transformed {
			info, ok := p.Overlay.ByOriginal(ctx, p.name, name)
			if !ok {
				return nil, false
			}
			item = reworded(item, info)
		}
		return item, !restricted || p.Catalog.Shows(ctx, ref)
	})
}

// reworded is a definition with the title and description of info.
func reworded(item json.RawMessage, info tool.Info) json.RawMessage {
	for key, text := range map[string]string{"title": info.Title, "description": info.Description} {
		if was, _ := rawjson.GetText(item, key); was != text {
			item = rawjson.SetText(item, key, text)
		}
	}
	return item
}

// filterList replaces the items of a list in a page by those that keep returns. A page
// of which nothing changes is returned as it is.
func filterList(page json.RawMessage, list string, keep func(item json.RawMessage) (json.RawMessage, bool)) json.RawMessage {
	raw, _ := rawjson.Get(page, list)
	items, ok := rawjson.Items(raw)
	if !ok {
		return page
	}
	out, same := []byte{'['}, true
	for _, item := range items {
		kept, ok := keep(item)
		if same = same && ok && bytes.Equal(kept, item); !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, kept...)
	}
	if same {
		return page
	}
	return rawjson.Set(page, list, append(out, ']'))
}

// maxPages bounds how many pages of prompts are read from an upstream.
const maxPages = 100

// checkPrompt says why a prompt may not be used. One that was never listed is looked
// for first.
func (p peer) checkPrompt(ctx context.Context, name string) error {
	seen, err := p.Pins.CheckKnown(p.name, pin.Prompt, name)
	if seen {
		return err
	}
	params := json.RawMessage(`{}`)
	for range maxPages {
		page, err := p.Request(ctx, wire.MethodPromptsList, params, nil)
		if err != nil {
			return err
		}
		cursor, more := rawjson.Get(page, "nextCursor")
		if !more || rawjson.IsNull(cursor) {
			break
		}
		params = rawjson.Set(nil, "cursor", cursor)
	}
	if seen, err = p.Pins.CheckKnown(p.name, pin.Prompt, name); seen {
		return err
	}
	return fault.New(fault.NotFound, "no prompt %q", name).
		WithHint("%s is pinned: only prompts that it lists and a person has approved can be used", p.name)
}

// Describe removes instructions that are not approved.
func (p peer) Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	capabilities, serverInfo, instructions, err = p.Peer.Describe(ctx)
	if text, _ := rawjson.Text(instructions); err == nil && text != "" && p.Pins.CheckDefinition(ctx, p.name, pin.Instructions, instructions) != nil {
		instructions = nil
	}
	return capabilities, serverInfo, instructions, err
}
