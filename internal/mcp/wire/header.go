package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// HTTP headers of MCP.
const (
	HeaderSession     = "Mcp-Session-Id"
	HeaderRevision    = "Mcp-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEventID = "Last-Event-Id"

	ContentJSON  = "application/json"
	ContentEvent = "text/event-stream"
)

const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// EncodeHeader makes text safe as a header value: as it is where it consists of
// printable ASCII without blanks at its ends, else as base64 in a sentinel.
func EncodeHeader(text string) string {
	if !needsSentinel(text) {
		return text
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(text)) + sentinelClose
}

// DecodeHeader is the reverse of EncodeHeader.
func DecodeHeader(value string) (string, error) {
	inner, open := strings.CutPrefix(value, sentinelOpen)
	inner, closed := strings.CutSuffix(inner, sentinelClose)
	if !open || !closed {
		return value, nil
	}
	text, err := base64.StdEncoding.DecodeString(inner)
	if err != nil {
		return "", fmt.Errorf("decode header value: %w", err)
	}
	return string(text), nil
}

func needsSentinel(text string) bool {
	if text == "" {
		return false
	}
	if strings.HasPrefix(text, sentinelOpen) && strings.HasSuffix(text, sentinelClose) {
		return true
	}
	for i := range len(text) {
		c := text[i]
		if c < 0x20 || c > 0x7e || c == ' ' && (i == 0 || i == len(text)-1) {
			return true
		}
	}
	return false
}

// NameOf is what Mcp-Name says for a request: the tool or prompt called, the
// resource read, or the task asked about. ok is false for methods that carry no such header.
func NameOf(method string, params json.RawMessage) (name string, ok bool) {
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		return rawjson.GetText(params, "name")
	case MethodResourcesRead:
		return rawjson.GetText(params, "uri")
	case MethodTasksGet, MethodTasksUpdate, MethodTasksCancel:
		return rawjson.GetText(params, "taskId")
	}
	return "", false
}

// MediaType is the media type of a Content-Type header, without parameters, or "" if it
// names none.
func MediaType(header string) string {
	if header == ContentJSON || header == ContentEvent {
		return header
	}
	kind, _, _ := mime.ParseMediaType(header) // an invalid header names none
	return kind
}
