package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// This file converts the tools and results of backends to MCP.

// definitionOf is the MCP definition of a tool.
func definitionOf(t hootproto.Tool) json.RawMessage {
	d := rawjson.SetText(nil, "name", t.Name)
	if t.Title != "" {
		d = rawjson.SetText(d, "title", t.Title)
	}
	d = rawjson.SetText(d, "description", t.Description)
	input := t.InputSchema
	if rawjson.IsNull(input) { // without a schema all arguments are allowed
		input = json.RawMessage(`{"type":"object"}`)
	}
	d = rawjson.Set(d, "inputSchema", input)
	if !rawjson.IsNull(t.OutputSchema) {
		d = rawjson.Set(d, "outputSchema", t.OutputSchema)
	}
	var hints json.RawMessage
	for _, hint := range []struct {
		name  string
		value bool
	}{
		{"readOnlyHint", t.ReadOnly}, {"idempotentHint", t.Idempotent || t.ReadOnly},
		{"destructiveHint", t.Destructive && !t.ReadOnly}, {"openWorldHint", !t.ClosedWorld},
	} {
		hints = rawjson.Set(hints, hint.name, jsonBool(hint.value))
	}
	return rawjson.Set(d, "annotations", hints)
}

func jsonBool(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

// resultOf is the MCP result of a call: text and data, or an error with its code.
func resultOf(outcome hootproto.Outcome) json.RawMessage {
	if outcome.Err != nil {
		return errorResult(outcome.Err)
	}
	output := outcome.Output
	text := output.Text
	if text == "" && len(output.Data) > 0 {
		text = string(output.Data)
	}
	content := []byte{'['}
	if text != "" || len(output.Attachments) == 0 {
		content = append(content, textBlock(text)...)
	}
	for _, a := range output.Attachments {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, attachmentBlock(a)...)
	}
	result := rawjson.Set(nil, "content", append(content, ']'))
	switch data := output.Data; {
	case len(data) == 0:
		return result
	case rawjson.IsObject(data):
		return rawjson.Set(result, "structuredContent", data)
	default: // structuredContent must be an object
		return rawjson.Set(result, "structuredContent", rawjson.Set(nil, "result", data))
	}
}

// maxDetails is the largest size of error details that are part of the text.
const maxDetails = 2 << 10

// errorResult is the result of a tool that failed, as our own tools return it: the
// code and the message as text, and the whole error in _meta.
func errorResult(e *hootproto.ToolError) json.RawMessage {
	text := e.Code + ": " + e.Message
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	fault := rawjson.SetText(rawjson.SetText(nil, "code", e.Code), "message", e.Message)
	if e.Hint != "" {
		fault = rawjson.SetText(fault, "hint", e.Hint)
	}
	if len(e.Details) > 0 && !rawjson.IsNull(e.Details) {
		fault = rawjson.Set(fault, "details", e.Details)
		var line bytes.Buffer
		if len(e.Details) <= maxDetails && json.Compact(&line, e.Details) == nil {
			text += "\n" + line.String()
		}
	}
	content := append(append([]byte{'['}, textBlock(text)...), ']')
	result := rawjson.Set(rawjson.Set(nil, "content", content), "isError", jsonBool(true))
	return wire.SetMeta(result, rawjson.Set(nil, tool.ErrorKey, fault))
}

func textBlock(text string) json.RawMessage {
	return rawjson.SetText(rawjson.SetText(nil, "type", "text"), "text", text)
}

// attachmentBlock is the content block of an attachment.
func attachmentBlock(a hootproto.Attachment) json.RawMessage {
	data := base64.StdEncoding.EncodeToString(a.Data)
	kind, _, _ := strings.Cut(a.MimeType, "/")
	switch {
	case len(a.Data) > 0 && (kind == "image" || kind == "audio"):
		return rawjson.SetText(rawjson.SetText(rawjson.SetText(nil, "type", kind), "data", data), "mimeType", a.MimeType)
	case len(a.Data) == 0 && a.Text == "":
		block := rawjson.SetText(rawjson.SetText(nil, "type", "resource_link"), "uri", a.URI)
		name := a.Name
		if name == "" {
			name = a.URI
		}
		return withType(rawjson.SetText(block, "name", name), a.MimeType)
	}
	resource := withType(rawjson.SetText(nil, "uri", a.URI), a.MimeType)
	if a.Text != "" {
		resource = rawjson.SetText(resource, "text", a.Text)
	} else {
		resource = rawjson.SetText(resource, "blob", data)
	}
	return rawjson.Set(rawjson.SetText(nil, "type", "resource"), "resource", resource)
}

func withType(object json.RawMessage, mimeType string) json.RawMessage {
	if mimeType == "" {
		return object
	}
	return rawjson.SetText(object, "mimeType", mimeType)
}
