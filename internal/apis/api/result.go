package api

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// OperationKey is the key in a definition's _meta with the request that the tool makes. A
// tool that is sent elsewhere has another definition, which pins notice.
const OperationKey = "luanette/operation"

// NextPageToken is the member of results that continues a list, and PageToken the argument
// that takes it.
const (
	NextPageToken = "next_page_token"
	PageToken     = "page_token"
)

// PageSchema describes the argument that continues a list.
const PageSchema = `{"type":"string","description":"Continues a list: next_page_token of the result before, with the other arguments unchanged."}`

// Annotations of tools that only read, and of those that may do anything.
const (
	ReadOnly = `{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}`
	Writes   = `{"readOnlyHint":false}`
)

// Content is content with one text.
func Content(text string) json.RawMessage {
	return append(rawjson.AppendText([]byte(`[{"type":"text","text":`), text), `}]`...)
}

// Result is the result of tools/call with a text for models and an object for programs.
func Result(text string, structured json.RawMessage) json.RawMessage {
	return rawjson.Set(rawjson.Set(nil, "content", Content(text)), "structuredContent", structured)
}

// Failure is the result of a call whose failure the service reports.
func Failure(text string, structured json.RawMessage) json.RawMessage {
	return rawjson.Set(Result(text, structured), "isError", json.RawMessage("true"))
}

// Object makes an object of a value, as structured content must be one: a list becomes its
// items, another value its result.
func Object(value json.RawMessage) json.RawMessage {
	switch rawjson.First(value) {
	case '{':
		return value
	case '[':
		return rawjson.Set(nil, "items", value)
	}
	return rawjson.Set(nil, "result", value)
}
