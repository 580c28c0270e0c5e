// Package peerview shows one upstream at /mcp/NAME as the caller may see it.
package peerview

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/skills"
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

// Request relays any other request. What reads from the upstream passes the steps of calls, and
// lists lack what the caller may not see.
func (p peer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	params, err := checkParams(method, params)
	if err != nil {
		return nil, err
	}
	call := tool.Call{Args: params, Caller: caller}
	switch method {
	case wire.MethodPromptsGet:
		call.Kind = tool.GetsPrompt
		name, _ := rawjson.GetText(params, "name")
		call.Ref = call.Kind.Ref(p.name, name)
		if err := p.checkPrompt(ctx, name); err != nil {
			return nil, err
		}
		call.Args, _ = rawjson.Get(params, "arguments")
		return p.relay(ctx, call, params)
	case wire.MethodResourcesRead:
		call.Kind = tool.ReadsResource
		uri, _ := rawjson.GetText(params, "uri")
		call.Ref = call.Kind.Ref(p.name, uri)
		if err := p.checkSkillOf(ctx, uri); err != nil {
			return nil, err
		}
		return p.relay(ctx, call, params)
	case wire.MethodSubscribe, wire.MethodComplete, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		if err := p.checkSubject(ctx, params); err != nil {
			return nil, err
		}
	}
	result, err := p.Peer.Request(ctx, method, params, caller)
	if err != nil {
		return nil, err
	}
	switch method {
	case wire.MethodToolsList:
		return p.filterTools(ctx, principal.Of(ctx), result), nil
	case wire.MethodPromptsList:
		return p.filterPage(ctx, method, "prompts", result), nil
	case wire.MethodResourcesList:
		return p.filterPage(ctx, method, "resources", result), nil
	case wire.MethodResourceTemplates:
		return p.filterPage(ctx, method, "resourceTemplates", result), nil
	case wire.MethodSkillsList:
		return p.filterPage(ctx, method, "skills", result), nil
	case wire.MethodSkillsGet:
		entry, _ := rawjson.Get(result, "skill")
		return result, p.Pins.CheckDefinition(ctx, p.name, pin.Skill, entry)
	default:
		return result, nil
	}
}

// relay takes a request through the steps of calls. What it reads changes nothing.
func (p peer) relay(ctx context.Context, call tool.Call, params json.RawMessage) (json.RawMessage, error) {
	result, err := p.Catalog.Relay(ctx, infoOf(call.Ref), call, params, requester{p.Peer, string(call.Kind)})
	return result.Raw, err
}

// infoOf stands for the definition of something that is no tool, and changes nothing.
func infoOf(ref tool.Ref) tool.Info { return tool.Info{Ref: ref, Hints: tool.Hints{ReadOnly: true}} }

// requester makes a request of a call.
type requester struct {
	hub.Peer
	method string
}

// Call implements catalog.Forwarder.
func (r requester) Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error) {
	raw, err := r.Request(ctx, r.method, params, call.Caller)
	return tool.Result{Raw: raw}, err
}

// checkSubject refuses requests about a resource or a prompt that the caller may not use.
func (p peer) checkSubject(ctx context.Context, params json.RawMessage) error {
	uri, _ := rawjson.GetText(params, "uri")
	call := tool.Call{Kind: tool.ReadsResource}
	if ref, ok := rawjson.Get(params, "ref"); ok {
		uri, _ = rawjson.GetText(ref, "uri")
		if name, ok := rawjson.GetText(ref, "name"); ok {
			uri, call.Kind = name, tool.GetsPrompt
		}
	}
	call.Ref = call.Kind.Ref(p.name, uri)
	return p.Catalog.CheckRelay(ctx, infoOf(call.Ref), call)
}

// Listed is a list as it is known, without what the caller may not see.
func (p peer) Listed(ctx context.Context, method string) []json.RawMessage {
	items := slices.Clone(p.Peer.Listed(ctx, method))
	return slices.DeleteFunc(items, func(item json.RawMessage) bool { return !p.shows(ctx, method, item) })
}

// filterPage removes from a page what the caller may not see.
func (p peer) filterPage(ctx context.Context, method, list string, page json.RawMessage) json.RawMessage {
	return filterList(page, list, func(item json.RawMessage) (json.RawMessage, bool) { return item, p.shows(ctx, method, item) })
}

// shows tells whether the caller may see an entry of a list.
func (p peer) shows(ctx context.Context, method string, item json.RawMessage) bool {
	kind, key, pinned := tool.ReadsResource, "uri", pin.Kind("")
	switch method {
	case wire.MethodPromptsList:
		kind, key, pinned = tool.GetsPrompt, "name", pin.Prompt
	case wire.MethodResourceTemplates:
		key = "uriTemplate"
	case wire.MethodSkillsList:
		pinned = pin.Skill
	}
	name, _ := rawjson.GetText(item, key)
	info := infoOf(kind.Ref(p.name, name))
	return p.Catalog.Lists(ctx, &info) && (pinned == "" || p.Pins.CheckDefinition(ctx, p.name, pinned, item) == nil)
}

// checkSkillOf refuses a file of a skill that is not approved.
func (p peer) checkSkillOf(ctx context.Context, uri string) error {
	if p.Pins.ModeOf(p.name) != pin.Pinned {
		return nil
	}
	for _, entry := range p.Peer.Listed(ctx, wire.MethodSkillsList) {
		if main, _ := rawjson.GetText(entry, "uri"); skills.Contains(main, uri) {
			if err := p.Pins.CheckDefinition(ctx, p.name, pin.Skill, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkParams refuses params that the upstream might read otherwise than we do when we
// decide by the tool's name: some servers take the first of two equal keys, or ignore
// case. Requests about tasks are not relayed: the upstream sees one client, so every
// caller would have the tasks of all. The hub has tasks of its own for them.
func checkParams(method string, params json.RawMessage) (json.RawMessage, error) {
	if strings.HasPrefix(method, "tasks/") {
		return nil, wire.Errorf(wire.CodeMethodNotFound, "method not found: %s", method)
	}
	keys, checked := checkedKeys[method]
	if !checked {
		return params, nil
	}
	params, twice := unambiguous(params, keys)
	if ref, ok := rawjson.Get(params, "ref"); ok && twice == "" {
		_, twice = unambiguous(ref, refKeys)
	}
	if twice != "" {
		return nil, fault.New(fault.InvalidParams, "the params of %s are ambiguous: %s", method, twice).
			WithHint("write %s once, in lower case", twice)
	}
	return params, nil
}

// unambiguous returns params without the key that makes a call a task, and which of the keys
// they have twice, or not in lower case.
func unambiguous(params json.RawMessage, keys [][]byte) (_ json.RawMessage, twice string) {
	seen := map[int]bool{}
	params = rawjson.DeleteFunc(params, func(key []byte) bool {
		for i, known := range keys {
			if bytes.EqualFold(key, known) {
				if seen[i] || !bytes.Equal(key, known) {
					twice = string(known)
				}
				seen[i] = true
			}
		}
		return bytes.EqualFold(key, taskKey)
	})
	return params, twice
}

// checkedKeys are the members of params that decisions depend on, by method, and refKeys those
// of the reference of completion/complete; taskKey is the one that makes a call a task, which
// the call itself says.
var (
	checkedKeys = map[string][][]byte{
		wire.MethodToolsCall: nameKeys, wire.MethodPromptsGet: nameKeys,
		wire.MethodResourcesRead: uriKeys, wire.MethodSubscribe: uriKeys, wire.MethodComplete: {[]byte("ref")},
		wire.MethodSkillsGet: uriKeys, wire.MethodDirectoryRead: uriKeys,
	}
	uriKeys  = [][]byte{[]byte("uri")}
	nameKeys = [][]byte{[]byte("name"), []byte("arguments")}
	refKeys  = [][]byte{[]byte("name"), []byte("uri")}
	taskKey  = []byte("task")
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
		item, forCaller := p.appItem(ctx, item)
		if !forCaller {
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

// appItem is the definition of a tool for the caller in MCP Apps: without a page that it may not
// read, and false if the tool is for pages, which it does not show.
func (p peer) appItem(ctx context.Context, item json.RawMessage) (json.RawMessage, bool) {
	app := apps.Of(item)
	if app.Page != "" && !p.ReadsPage(ctx, app.Page) {
		item = apps.WithPage(item, "")
	}
	return item, !app.Hidden || tool.ShowsApps(ctx)
}

// ReadsPage tells whether the caller may read the page of a tool.
func (p peer) ReadsPage(ctx context.Context, uri string) bool {
	info := infoOf(tool.ReadsResource.Ref(p.name, uri))
	return p.Catalog.Lists(ctx, &info)
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
	out, same := make([]json.RawMessage, 0, len(items)), true
	for _, item := range items {
		kept, ok := keep(item)
		same = same && ok && bytes.Equal(kept, item)
		if ok {
			out = append(out, kept)
		}
	}
	if same {
		return page
	}
	return rawjson.Set(page, list, rawjson.List(out))
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
