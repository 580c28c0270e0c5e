package upstream

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
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
	for i, a := range output.Attachments {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, attachmentBlock(a, i+1)...)
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

// nameKey is the member of _meta with the name of an attachment, for which embedded
// resources, images and sounds have no field.
const nameKey = "luanette/name"

// attachmentBlock is the content block of an attachment, the nth of its result.
func attachmentBlock(a hootproto.Attachment, n int) json.RawMessage {
	data := base64.StdEncoding.EncodeToString(a.Data)
	kind, _, _ := strings.Cut(a.MimeType, "/")
	switch {
	case len(a.Data) > 0 && (kind == "image" || kind == "audio"):
		block := rawjson.SetText(rawjson.SetText(nil, "type", kind), "data", data)
		return withName(rawjson.SetText(block, "mimeType", a.MimeType), a.Name)
	case len(a.Data) == 0 && a.Text == "" && a.URI != "":
		block := rawjson.SetText(rawjson.SetText(nil, "type", "resource_link"), "uri", a.URI)
		return withType(rawjson.SetText(block, "name", cmp.Or(a.Name, a.URI)), a.MimeType)
	}
	resource := withType(rawjson.SetText(nil, "uri", attachmentURI(a, n)), a.MimeType)
	if len(a.Data) > 0 {
		resource = rawjson.SetText(resource, "blob", data)
	} else {
		resource = rawjson.SetText(resource, "text", a.Text)
	}
	return rawjson.Set(rawjson.SetText(nil, "type", "resource"), "resource", withName(resource, a.Name))
}

// attachmentURI is the URI of an embedded resource, which MCP requires: the
// attachment's own, or one made of its name or number.
func attachmentURI(a hootproto.Attachment, n int) string {
	if a.URI != "" {
		return a.URI
	}
	return "attachment:///" + url.PathEscape(cmp.Or(a.Name, strconv.Itoa(n)))
}

func withName(object json.RawMessage, name string) json.RawMessage {
	if name == "" {
		return object
	}
	return rawjson.Set(object, "_meta", rawjson.SetText(nil, nameKey, name))
}

func withType(object json.RawMessage, mimeType string) json.RawMessage {
	if mimeType == "" {
		return object
	}
	return rawjson.SetText(object, "mimeType", mimeType)
}
