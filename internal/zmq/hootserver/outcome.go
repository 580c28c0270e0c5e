package hootserver

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// outcomeOf is a tool's result in the format of the protocol.
func outcomeOf(result tool.Result) hootproto.Outcome {
	view, err := result.View()
	if err != nil {
		return failure(err)
	}
	if view.IsError {
		return hootproto.Outcome{Err: toolError(view)}
	}
	output := hootproto.ToolOutput{Text: view.Text()}
	if string(view.Structured) != "null" {
		output.Data = view.Structured
	}
	for _, block := range view.Content {
		if a, ok := attachment(block); ok {
			output.Attachments = append(output.Attachments, a)
		}
	}
	return hootproto.Outcome{Output: output}
}

// toolError is the error of a failed tool: the structured error in its metadata, or
// its text.
func toolError(view tool.View) *hootproto.ToolError {
	var meta map[string]json.RawMessage
	var found hootproto.ToolError
	if json.Unmarshal(view.Meta, &meta) == nil && json.Unmarshal(meta[tool.ErrorKey], &found) == nil && found.Code != "" {
		return &found
	}
	details := view.Structured
	if string(details) == "null" {
		details = nil
	}
	return &hootproto.ToolError{Code: codeFailed, Message: view.Text(), Details: details}
}

// codeFailed is the code of a tool that failed without giving one.
const codeFailed = "tool_failed"

// failure is an error in the format of the protocol.
func failure(err error) hootproto.Outcome {
	f := fault.From(err)
	return hootproto.Outcome{Err: &hootproto.ToolError{
		Code: string(f.Code), Message: cmp.Or(f.Error(), string(f.Code)), Hint: fault.HintOf(f), Details: f.Details,
	}}
}

// attachment converts a content block other than text.
func attachment(raw json.RawMessage) (a hootproto.Attachment, ok bool) {
	type meta struct {
		Name string `json:"luanette/name"` // as our client of backends writes it
	}
	var block struct {
		Type, MimeType, URI, Name string
		Data                      []byte
		Meta                      meta `json:"_meta"`
		Resource                  struct {
			URI, MimeType, Text string
			Blob                []byte
			Meta                meta `json:"_meta"`
		}
	}
	if json.Unmarshal(raw, &block) != nil {
		return a, false
	}
	switch block.Type {
	case "image", "audio":
		return hootproto.Attachment{MimeType: block.MimeType, Data: block.Data, Name: block.Meta.Name}, true
	case "resource_link":
		return hootproto.Attachment{MimeType: block.MimeType, URI: block.URI, Name: block.Name}, true
	case "resource":
		r := block.Resource
		return hootproto.Attachment{MimeType: r.MimeType, URI: r.URI, Text: r.Text, Data: r.Blob, Name: r.Meta.Name}, true
	}
	return a, false
}

// wireName replaces characters that names on the wire cannot have: they consist of
// letters, digits, _ and -.
func wireName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
