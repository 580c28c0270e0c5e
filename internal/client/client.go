// Package client is what the commands of cmd/luanette talk to: the same operations
// on a server in this process or on one that runs elsewhere.
package client

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
)

// Client calls our own tools, reads our resources and uses the admin API.
type Client interface {
	// With returns the same client with notes added to the _meta of every call.
	With(notes map[string]any) Client
	// Call runs one of our own tools.
	Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error)
	// Read returns the text of a resource.
	Read(ctx context.Context, uri string) (string, error)
	// Admin sends a request to the admin API; body may be nil.
	Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error)
	// Waiting returns the upstreams in this process that are being connected.
	Waiting() []Waiting
	// Close closes the connection, or the server in this process.
	Close(ctx context.Context) error
}

// fullResults is the _meta that asks for whole results, which people can scroll through.
var fullResults = json.RawMessage(`{"` + builtin.FullKey + `":true}`)

// withNotes returns meta with notes added.
func withNotes(meta json.RawMessage, notes map[string]any) json.RawMessage {
	for key, note := range notes {
		if raw, err := json.Marshal(note); err == nil {
			meta = rawjson.Set(meta, key, raw)
		}
	}
	return meta
}

// resourceText is the text of a ReadResourceResult.
func resourceText(raw json.RawMessage) (string, error) {
	var result struct {
		Contents []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read resource")
	}
	if len(result.Contents) == 0 {
		return "", errors.New("the resource is empty")
	}
	return result.Contents[0].Text, nil
}
