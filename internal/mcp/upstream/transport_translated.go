package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// translated is a service that does not speak MCP, for transports that translate.
type translated interface {
	initialize(ctx context.Context) (json.RawMessage, error)
	ping(ctx context.Context) error
	list(ctx context.Context) (json.RawMessage, error)
	call(ctx context.Context, m wire.Message) (json.RawMessage, error)
}

// translate answers a request of MCP. What the service refuses is an answer; other errors
// are returned.
func translate(ctx context.Context, to translated, m wire.Message) (wire.Message, error) {
	var result json.RawMessage
	var err error
	switch m.Method {
	case wire.MethodInitialize:
		result, err = to.initialize(ctx)
	case wire.MethodPing:
		result, err = json.RawMessage(`{}`), to.ping(ctx)
	case wire.MethodToolsList:
		result, err = to.list(ctx)
	case wire.MethodToolsCall:
		result, err = to.call(ctx, m)
	default:
		err = wire.Errorf(wire.CodeMethodNotFound, "it is no MCP server and has no %s", m.Method)
	}
	var refused *wire.Error
	if err != nil && !errors.As(err, &refused) {
		return wire.Message{}, err
	}
	return wire.Answer(m.ID, result, err), nil
}

// handshake is the answer to initialize of a service that has only tools.
func handshake(name, version string) json.RawMessage {
	result := rawjson.SetText(nil, "protocolVersion", wire.NewestLegacy)
	result = rawjson.Set(result, "capabilities", json.RawMessage(`{"tools":{"listChanged":true}}`))
	return rawjson.Set(result, "serverInfo", rawjson.SetText(rawjson.SetText(nil, "name", name), "version", version))
}

// listed is the answer to tools/list.
func listed(definitions []json.RawMessage) json.RawMessage {
	size := 16
	for _, definition := range definitions {
		size += len(definition) + 1
	}
	result := append(make([]byte, 0, size), `{"tools":[`...)
	for i, definition := range definitions {
		if i > 0 {
			result = append(result, ',')
		}
		result = append(result, definition...)
	}
	return append(result, `]}`...)
}

// leftOut is why entries of the last list are not tools.
type leftOut struct {
	mu      sync.Mutex
	reasons []string
}

func (l *leftOut) set(reasons []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons = reasons
}

// LeftOut says why entries of the last list are not tools.
func (l *leftOut) LeftOut() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reasons
}
