package hootproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// callType is the type of a Call's body.
const callType = "tool_call"

// Call is the body of a Request that calls a tool.
type Call struct {
	Name string
	// Arguments is a JSON object; empty means none.
	Arguments json.RawMessage
}

// callBody is a Call on the wire, without its type.
type callBody struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// MarshalJSON writes {"type":"tool_call","name":…,"arguments":{…}}.
func (c Call) MarshalJSON() ([]byte, error) {
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	return tagged(callType, callBody(c))
}

// UnmarshalJSON reads a call. It also accepts the older form, in which the type is
// the tool's name and the other members are its arguments.
func (c *Call) UnmarshalJSON(raw []byte) error {
	kind, err := kindOf(raw)
	if err != nil {
		return err
	}
	if kind != callType {
		return c.flat(kind, raw)
	}
	var body callBody
	if err := json.Unmarshal(raw, &body); err != nil {
		return rawjson.InWords(err)
	}
	if body.Name == "" {
		return malformed("read call: the name of the tool is missing")
	}
	if len(body.Arguments) == 0 || string(body.Arguments) == "null" {
		body.Arguments = json.RawMessage("{}")
	}
	if body.Arguments[0] != '{' {
		return malformed("read call of %s: its arguments are not an object", body.Name)
	}
	*c = Call(body)
	return nil
}

func (c *Call) flat(name string, raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	delete(members, "type")
	arguments, err := json.Marshal(members)
	*c = Call{Name: name, Arguments: arguments}
	return err
}

// cancelType is the type of a Cancel's body.
const cancelType = "tool_cancel"

// Cancel is the body of a Request that cancels another one, whose Reply the client
// no longer waits for. Only backends whose Catalog has AcceptsCancel support it.
type Cancel struct {
	RequestID string `json:"request_id"`
}

// MarshalJSON writes {"type":"tool_cancel","request_id":…}.
func (c Cancel) MarshalJSON() ([]byte, error) {
	type plain Cancel
	return tagged(cancelType, plain(c))
}

// ReadCancel returns the id of the request to cancel, if the body of a Request is
// a Cancel.
func ReadCancel(raw json.RawMessage) (id ID, ok bool) {
	var body struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
	}
	const longest = 256 // bytes; so that large calls are not parsed twice
	if len(raw) > longest || json.Unmarshal(raw, &body) != nil || body.Type != cancelType {
		return id, false
	}
	id, err := ParseID(body.RequestID)
	return id, err == nil
}

// ToolOutput is the output of a tool: text for people and, unless it is null, the
// same as data for programs.
type ToolOutput struct {
	Text string          `json:"text"`
	Data json.RawMessage `json:"data"`
	// Attachments are images, sounds and other files that belong to it.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment is a file that belongs to an output: its bytes, its text, or only its
// URI.
type Attachment struct {
	MimeType string `json:"mime_type,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	Text     string `json:"text,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
}

// ToolError is why a tool failed. The code is for programs; docs/backends.md lists
// the common ones, and others are passed on unchanged.
type ToolError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Hint says what to do about it, for people; it may be empty.
	Hint    string          `json:"hint,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// The common codes.
const (
	CodeInvalidParams = "invalid_params"
	CodeToolNotFound  = "tool_not_found"
	CodeInternal      = "internal_error"
	CodeUnavailable   = "unavailable"
	CodeLimit         = "limit_exceeded"
)

// Unexecuted is the details of an error that says that the call was not executed,
// so that it is safe to retry it.
var Unexecuted = json.RawMessage(`{"executed":false}`)

// Unexecuted reports whether the error says that the call was not executed.
func (e *ToolError) Unexecuted() bool {
	var details struct {
		Executed *bool `json:"executed"`
	}
	return json.Unmarshal(e.Details, &details) == nil && details.Executed != nil && !*details.Executed
}

// Error returns the message without the code.
func (e *ToolError) Error() string { return e.Message }

// Outcome is the body of a Reply: an output, or an error when that is not nil.
type Outcome struct {
	Output ToolOutput
	Err    *ToolError
	// Broadcasts is how many progress and log messages about the call were broadcast
	// before the Reply. They come over another socket, so the Reply may overtake them.
	Broadcasts int
}

const (
	successType = "success"
	errorType   = "error"
)

// MarshalJSON writes {"type":"success","result":{"text":…,"data":…}} or
// {"type":"error","code":…,"message":…,"details":…}.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Err != nil {
		return tagged(errorType, struct {
			*ToolError
			Broadcasts int `json:"broadcasts,omitempty"`
		}{o.Err, o.Broadcasts})
	}
	if len(o.Output.Data) == 0 {
		o.Output.Data = json.RawMessage("null")
	}
	return tagged(successType, struct {
		Result     ToolOutput `json:"result"`
		Broadcasts int        `json:"broadcasts,omitempty"`
	}{o.Output, o.Broadcasts})
}

// UnmarshalJSON reads an outcome. A result of another shape than text and data
// counts as data, with itself as the text.
func (o *Outcome) UnmarshalJSON(raw []byte) error {
	*o = Outcome{}
	kind, err := kindOf(raw)
	if err != nil {
		return err
	}
	var more struct{ Broadcasts json.RawMessage }
	if err := json.Unmarshal(raw, &more); err != nil {
		return err
	}
	_ = json.Unmarshal(more.Broadcasts, &o.Broadcasts) // what is no number counts as none
	switch kind {
	case errorType:
		o.Err = &ToolError{}
		return json.Unmarshal(raw, o.Err)
	case successType:
		var body struct {
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			return err
		}
		o.Output = readOutput(body.Result)
		return nil
	default:
		return malformed("read reply: neither success nor error but %.40q", kind)
	}
}

func readOutput(result json.RawMessage) ToolOutput {
	var known struct {
		Text        *string         `json:"text"`
		Data        json.RawMessage `json:"data"`
		Attachments []Attachment    `json:"attachments"`
	}
	if json.Unmarshal(result, &known) == nil && known.Text != nil {
		if string(known.Data) == "null" {
			known.Data = nil
		}
		return ToolOutput{Text: *known.Text, Data: known.Data, Attachments: known.Attachments}
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		return ToolOutput{Text: text}
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, result) // valid: it is part of something read before
	return ToolOutput{Text: compact.String(), Data: result}
}

// Catalog is the body of a Ready: the capabilities of a backend.
type Catalog struct {
	// Protocol is the oldest version that the backend understands, Protocols are all.
	// Without Protocols it understands only that one.
	Protocol  string   `json:"protocol"`
	Protocols []string `json:"protocols,omitempty"`
	Tools     []Tool   `json:"tools"`
	// AcceptsBinary says that requests may have bodies of content type Binary.
	AcceptsBinary bool `json:"accepts_binary"`
	// AcceptsCancel says that the backend supports Cancel.
	AcceptsCancel bool `json:"accepts_cancel,omitempty"`
	// AcceptsMsgPack says that the backend prefers requests in MessagePack.
	AcceptsMsgPack bool `json:"accepts_msgpack,omitempty"`
	// Broadcasts is the endpoint of the backend's PUB socket, if it has one.
	Broadcasts string `json:"broadcasts,omitempty"`
	// Invalid says why entries of a decoded catalog are not in Tools.
	Invalid []string `json:"-"`
}

// UnmarshalJSON reads a catalog. Entries that are not tools are left out and
// described in Invalid.
func (c *Catalog) UnmarshalJSON(raw []byte) error {
	type plain Catalog
	wire := struct {
		*plain
		Tools []json.RawMessage `json:"tools"`
	}{plain: (*plain)(c)}
	*c = Catalog{}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	for i, entry := range wire.Tools {
		var t Tool
		if err := t.read(entry); err != nil {
			c.Invalid = append(c.Invalid, "entry "+strconv.Itoa(i+1)+": "+err.Error())
			continue
		}
		c.Tools = append(c.Tools, t)
	}
	return nil
}

// Newest returns the newest version that the backend and this package understand,
// or "" if there is none.
func (c *Catalog) Newest() string {
	offered := append(slices.Clone(c.Protocols), c.Protocol)
	known := Protocols()
	for i := len(known) - 1; i >= 0; i-- {
		if slices.Contains(offered, known[i]) {
			return known[i]
		}
	}
	return ""
}

// Tool is one entry of a Catalog. Instead of an object, a backend may send only
// the name as a string.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// ReadOnly says that calling it changes nothing, Idempotent that calling it
	// twice has the same effect as once. Only such calls are retried.
	ReadOnly   bool `json:"read_only,omitempty"`
	Idempotent bool `json:"idempotent,omitempty"`
	// Destructive says that calling it may destroy something.
	Destructive bool `json:"destructive,omitempty"`
	// ClosedWorld says that it uses only the backend's own data.
	ClosedWorld bool `json:"closed_world,omitempty"`
}

// read reads and checks an entry of a catalog. The error names the tool.
func (t *Tool) read(entry json.RawMessage) error {
	err := json.Unmarshal(entry, t)
	if err == nil {
		return t.Validate()
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("%.60s is neither a tool nor its name", entry)
	case errors.As(err, &wrong):
		return fmt.Errorf("tool %q: %s must not be a %s", t.Name, wrong.Field, wrong.Value)
	}
	return fmt.Errorf("tool %q: %w", t.Name, err)
}

// Validate reports what in the tool is against docs/backends.md.
func (t *Tool) Validate() error {
	if !validName(t.Name) {
		return fmt.Errorf("tool %.60q: a name has 1 to %d letters, digits, _ or -", t.Name, maxName)
	}
	for _, schema := range []struct {
		name string
		raw  json.RawMessage
	}{{"input_schema", t.InputSchema}, {"output_schema", t.OutputSchema}} {
		if len(schema.raw) > 0 && schema.raw[0] != '{' && string(schema.raw) != "null" {
			return fmt.Errorf("tool %q: %s must be an object", t.Name, schema.name)
		}
	}
	return nil
}

// maxName is the longest name of a tool, in bytes.
const maxName = 128

func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// UnmarshalJSON reads a tool, or only its name.
func (t *Tool) UnmarshalJSON(raw []byte) error {
	*t = Tool{}
	if raw[0] == '"' {
		return json.Unmarshal(raw, &t.Name)
	}
	type plain Tool
	return json.Unmarshal(raw, (*plain)(t))
}
