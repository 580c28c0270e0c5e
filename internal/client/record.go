package client

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/server"
)

// ListAll connects to an upstream of a server in this process and asks for everything
// that it lists, so that a recording has it.
func ListAll(ctx context.Context, srv *server.Server, name string) error {
	srv.Upstreams().Start(ctx, name)
	status, _ := srv.Upstreams().Status(name)
	peer, _, ok := srv.Upstreams().Relayed(ctx, name)
	if !ok || status.State != string(upstream.StateConnected) {
		return fault.New(fault.Unavailable, "upstream %s is %s: %s", name, status.State, status.Error).WithHint("%s", status.Hint)
	}
	capabilities, _, _, err := peer.Describe(ctx)
	if err != nil {
		return err
	}
	for _, list := range []struct{ capability, method string }{
		{"resources", wire.MethodResourcesList}, {"resources", wire.MethodResourceTemplates}, {"prompts", wire.MethodPromptsList},
	} {
		if _, offered := rawjson.Get(capabilities, list.capability); !offered {
			continue
		}
		if err := listPages(ctx, peer, list.method); err != nil {
			return err
		}
	}
	return nil
}

// maxPages ends a list that does not end by itself.
const maxPages = 100

// listPages asks for all pages of a list. A server that refuses to list has that recorded,
// too.
func listPages(ctx context.Context, peer hub.Peer, method string) error {
	params := json.RawMessage(`{}`)
	for range maxPages {
		result, err := peer.Request(ctx, method, params, nil)
		if err != nil && fault.CodeOf(err) == fault.Upstream {
			return nil
		}
		if err != nil {
			return err
		}
		cursor, more := rawjson.GetText(result, "nextCursor")
		if !more || cursor == "" {
			return nil
		}
		params = rawjson.SetText(nil, "cursor", cursor)
	}
	return nil
}
