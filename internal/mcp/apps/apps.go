// Package apps reads and writes what MCP Apps (the extension io.modelcontextprotocol/ui) adds to
// the definition of a tool: the page that a client shows for its results, and who may call it.
package apps

import (
	"encoding/json"
	"slices"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Capability is what we declare to servers: what clients that show Apps declare.
var Capability = json.RawMessage(`{"mimeTypes":["text/html;profile=mcp-app"]}`)

// MIMEType is that of pages.
const MIMEType = "text/html;profile=mcp-app"

// Scheme is how the URIs of pages begin.
const Scheme = "ui://"

// The keys of a definition's _meta. Servers still send the older one, too.
const (
	metaKey  = "ui"
	pageKey  = "resourceUri"
	olderKey = "ui/resourceUri"
)

// Declared reports whether the capabilities of a client say that it shows Apps.
func Declared(capabilities json.RawMessage) bool {
	extensions, _ := rawjson.Get(capabilities, "extensions")
	declared, _ := rawjson.Get(extensions, wire.ExtensionApps)
	return rawjson.IsObject(declared)
}

// Of reads the definition of a tool.
func Of(definition json.RawMessage) (app tool.App) {
	meta := wire.Meta(definition)
	if meta == nil {
		return app
	}
	ui, _ := rawjson.Get(meta, metaKey)
	if app.Page, _ = rawjson.GetText(ui, pageKey); app.Page == "" {
		app.Page, _ = rawjson.GetText(meta, olderKey)
	}
	raw, _ := rawjson.Get(ui, "visibility")
	if whom, isList := rawjson.Items(raw); isList { // without it, the tool is for both
		app.Hidden, app.Closed = !names(whom, "model"), !names(whom, "app")
	}
	return app
}

func names(whom []json.RawMessage, one string) bool {
	return slices.ContainsFunc(whom, func(raw json.RawMessage) bool { text, _ := rawjson.Text(raw); return text == one })
}

// WithPage is a definition with another page, or without one if uri is empty.
func WithPage(definition json.RawMessage, uri string) json.RawMessage {
	meta := wire.Meta(definition)
	if ui, ok := rawjson.Get(meta, metaKey); ok {
		meta = rawjson.Set(meta, metaKey, withText(ui, pageKey, uri))
	}
	return wire.SetMeta(definition, withText(meta, olderKey, uri))
}

// withText changes or deletes a member that is there.
func withText(object json.RawMessage, key, text string) json.RawMessage {
	if _, ok := rawjson.Get(object, key); !ok {
		return object
	}
	if text == "" {
		return rawjson.Delete(object, key)
	}
	return rawjson.SetText(object, key, text)
}

// ForModels is the definition of a tool that pages must not call.
func ForModels(definition json.RawMessage) json.RawMessage {
	return wire.SetMeta(definition, rawjson.Set(wire.Meta(definition), metaKey, json.RawMessage(`{"visibility":["model"]}`)))
}
