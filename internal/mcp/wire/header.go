package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"strconv"
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

// HeaderParam is one argument of a tool that is also sent as a header, because
// its schema carries x-mcp-header.
type HeaderParam struct {
	Path   []string // property names from the top of the arguments
	Header string   // in full: Mcp-Param-…
}

// HeaderParams finds the arguments a tool's input schema mirrors into headers.
// The error says which annotation is not allowed; a tool with one must not be used.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	if !mentionsHeader(schema) {
		return nil, nil
	}
	var found []HeaderParam
	seen := map[string]bool{}
	err := collectParams(schema, nil, seen, &found)
	if err != nil {
		return nil, err
	}
	return found, nil
}

const annotation = "x-mcp-header"

func mentionsHeader(schema json.RawMessage) bool {
	// If the key is written with escapes, the schema contains a backslash.
	return bytes.Contains(schema, []byte(annotation)) || bytes.Contains(schema, []byte(`\u`))
}

func collectParams(schema json.RawMessage, path []string, seen map[string]bool, found *[]HeaderParam) error {
	properties, ok := rawjson.Get(schema, "properties")
	if !ok {
		return nil
	}
	var wrong error
	rawjson.Each(properties, func(name string, property json.RawMessage) bool {
		here := append(path[:len(path):len(path)], name)
		if raw, ok := rawjson.Get(property, annotation); ok {
			header, err := paramHeader(property, raw, seen)
			if err != nil {
				wrong = fmt.Errorf("property %s: %w", strings.Join(here, "."), err)
				return false
			}
			*found = append(*found, HeaderParam{Path: here, Header: header})
		}
		wrong = collectParams(property, here, seen, found)
		return wrong == nil
	})
	return wrong
}

func paramHeader(property, raw json.RawMessage, seen map[string]bool) (string, error) {
	switch kind, _ := rawjson.GetText(property, "type"); kind {
	case "string", "integer", "boolean":
	default:
		return "", fmt.Errorf("%s needs type string, integer or boolean, not %q", annotation, kind)
	}
	name, ok := rawjson.Text(raw)
	if !ok || name == "" || strings.ContainsFunc(name, notToken) {
		return "", fmt.Errorf("%s must be a header name, not %s", annotation, raw)
	}
	lower := strings.ToLower(name)
	if seen[lower] {
		return "", fmt.Errorf("%s %q is used twice", annotation, name)
	}
	seen[lower] = true
	return HeaderParamPrefix + name, nil
}

func notToken(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// Argument finds the parameter's value among a tool's arguments. ok is false
// when it is missing or null.
func (p HeaderParam) Argument(args json.RawMessage) (value json.RawMessage, ok bool) {
	value = args
	for _, name := range p.Path {
		if value, ok = rawjson.Get(value, name); !ok {
			return nil, false
		}
	}
	return value, string(value) != "null"
}

// Value is the header's value for a tool's arguments. ok is false when the
// argument is missing, null, or nothing a header can hold.
func (p HeaderParam) Value(args json.RawMessage) (value string, ok bool) {
	raw, ok := p.Argument(args)
	if !ok {
		return "", false
	}
	text, ok := plain(raw)
	return EncodeHeader(text), ok
}

// Matches tells whether a received header value says the same as the argument.
func (p HeaderParam) Matches(header string, args json.RawMessage) bool {
	raw, ok := p.Argument(args)
	if !ok {
		return header == ""
	}
	text, ok := plain(raw)
	if !ok {
		return false
	}
	said, err := DecodeHeader(header)
	if err != nil {
		return false
	}
	if raw[0] == '"' || raw[0] == 't' || raw[0] == 'f' {
		return said == text
	}
	n, err := strconv.ParseFloat(said, 64)
	want, _ := strconv.ParseFloat(text, 64)
	return err == nil && n == want
}

// plain is a string, boolean or whole number within 2^53 as text.
func plain(raw json.RawMessage) (string, bool) {
	if text, ok := rawjson.Text(raw); ok {
		return text, true
	}
	if s := string(raw); s == "true" || s == "false" {
		return s, true
	}
	n, ok := rawjson.Number(raw)
	if !ok || n != math.Trunc(n) || math.Abs(n) > 1<<53-1 {
		return "", false
	}
	return strconv.FormatInt(int64(n), 10), true
}
