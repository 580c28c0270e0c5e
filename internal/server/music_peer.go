package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/music/hootenanny"
)

// musicPeer is the music backend at /mcp/hootenanny with our resources and our prompt about
// music: the backend itself has tools only.
type musicPeer struct {
	hub.Peer
	resources *builtin.Resources
	prompts   *builtin.Prompts
}

// musicPrompt is the prompt about music.
const musicPrompt = "midi-workflow"

// withMusic is the peer with what belongs to music, if it is a music backend that does not
// speak MCP: that of this process, or one over ZeroMQ.
func (in *parts) withMusic(name string, relayed hub.Peer) hub.Peer {
	if !isMusic(name) || in.localMusic == nil {
		return relayed
	}
	if s, ok := in.upstreams.Manager.Status(name); ok && !strings.HasPrefix(s.Desired.URL, "zmq+") {
		return relayed
	}
	return musicPeer{relayed, builtin.NewResources(builtin.MusicResources(in.music())), in.prompts()}
}

// Describe adds the capabilities.
func (p musicPeer) Describe(ctx context.Context) (capabilities, serverInfo, instructions json.RawMessage, err error) {
	capabilities, serverInfo, instructions, err = p.Peer.Describe(ctx)
	for _, name := range []string{"resources", "prompts"} {
		capabilities = rawjson.Set(capabilities, name, json.RawMessage(`{}`))
	}
	return capabilities, serverInfo, instructions, err
}

// Request answers requests about resources and prompts.
func (p musicPeer) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	switch method {
	case wire.MethodResourcesList:
		return listOf(ctx, "resources", p.resources.ListResources)
	case wire.MethodResourceTemplates:
		return listOf(ctx, "resourceTemplates", p.resources.ListTemplates)
	case wire.MethodResourcesRead:
		uri, _ := rawjson.GetText(params, "uri")
		return p.resources.ReadResource(ctx, uri, caller)
	case wire.MethodPromptsList:
		return listOf(ctx, "prompts", p.listPrompts)
	case wire.MethodPromptsGet:
		name, _ := rawjson.GetText(params, "name")
		if name != musicPrompt {
			return nil, fault.New(fault.NotFound, "no prompt %q", name).WithHint("%s has the prompt %s; /mcp has others", hootenanny.Space, musicPrompt)
		}
		args, _ := rawjson.Get(params, "arguments")
		return p.prompts.GetPrompt(ctx, name, args, caller)
	}
	return p.Peer.Request(ctx, method, params, caller)
}

func (p musicPeer) listPrompts(ctx context.Context) ([]json.RawMessage, error) {
	all, err := p.prompts.ListPrompts(ctx)
	return slices.DeleteFunc(all, func(item json.RawMessage) bool {
		name, _ := rawjson.GetText(item, "name")
		return name != musicPrompt
	}), err
}

// listOf is a page of a list in MCP's form.
func listOf(ctx context.Context, name string, list func(context.Context) ([]json.RawMessage, error)) (json.RawMessage, error) {
	items, err := list(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string][]json.RawMessage{name: items})
}
