package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/luanette/luanette/internal/base/rawjson"

	"github.com/luanette/luanette/internal/base/fault"
)

// Error codes of JSON-RPC and of MCP.
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeResourceNotFound = -32002 // legacy revisions; the modern one says CodeInvalidParams

	CodeHeaderMismatch        = -32020 // a header says something else than the body
	CodeMissingCapability     = -32021 // the request needs a capability the client did not declare
	CodeUnsupportedRevision   = -32022 // data: {supported: […], requested}
	CodeURLElicitationMissing = -32042 // the user has to visit a page first; data: {elicitations: […]}
)

// Error is a JSON-RPC error object. One that an upstream sent travels through
// error chains as it came, so that code, message and data reach the client
// unchanged.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage // nil when absent
}

// Errorf makes an error without data.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithData returns a copy that carries v as data.
func (e *Error) WithData(v any) *Error {
	c := *e
	if raw, err := json.Marshal(v); err == nil {
		c.Data = raw
	}
	return &c
}

func (e *Error) Error() string {
	return e.Message + " (code " + strconv.FormatInt(e.Code, 10) + ")"
}

// MarshalJSON writes {code, message, data?}.
func (e *Error) MarshalJSON() ([]byte, error) { return e.append(nil), nil }

func (e *Error) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), e.Code, 10)
	dst = rawjson.AppendText(append(dst, `,"message":`...), e.Message)
	if e.Data != nil {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, '}')
}

// NeedsTasks refuses a request that only clients with tasks can make.
func NeedsTasks() *Error {
	return Errorf(CodeMissingCapability, "this request needs a client that declares the extension %s", ExtensionTasks).
		WithData(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{ExtensionTasks: struct{}{}}}})
}

// ParseError reads an error object, forgiving whatever is missing or of another
// type: a broken error must still end the call it belongs to.
func ParseError(raw []byte) *Error {
	e := &Error{Code: CodeInternal}
	if code, ok := rawjson.Get(raw, "code"); ok {
		if n, err := strconv.ParseFloat(string(code), 64); err == nil {
			e.Code = int64(n)
		}
	}
	e.Message, _ = rawjson.GetText(raw, "message")
	if e.Message == "" {
		e.Message = "error without a message"
	}
	if data, ok := rawjson.Get(raw, "data"); ok {
		e.Data = data
	}
	return e
}

// ErrorFrom makes the error object for err: the *Error in its chain as it is,
// or else its fault in MCP's codes, with {code, hint, details} as data.
func ErrorFrom(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	f := fault.From(err)
	e := &Error{Code: codeOf(f.Code), Message: f.Error()}
	if raw, err := json.Marshal(f); err == nil {
		e.Data = rawjson.Delete(raw, "message")
	}
	return e
}

func codeOf(code fault.Code) int64 {
	switch code {
	case fault.InvalidParams, fault.ToolNotFound, fault.NotFound:
		return CodeInvalidParams
	default:
		return CodeInternal
	}
}
