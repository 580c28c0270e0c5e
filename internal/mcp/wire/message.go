// Package wire is MCP's message format, shared by server and client side: JSON-RPC
// messages whose parameters and results stay raw, header names and encodings, and
// the revisions of the protocol. Nothing here connects or serves.
//
// Raw parts are slices of the text they were parsed from, so the caller must not modify
// that text afterwards.
package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/sse"
)

// MaxMessage is the size up to which one message is read, unless another limit is
// set.
const MaxMessage = sse.MaxEvent

// ErrTooLarge says that a message is larger than its reader accepts, whether it came
// as a line, as a body or as an event.
var ErrTooLarge = sse.ErrTooLarge

// ID is a request's identifier as JSON text: a quoted string, a number, or
// null. Empty means there is none. IDs that JSON calls equal strings compare
// equal; so an ID can key a map.
type ID string

// NullID answers a message whose own identifier could not be read.
const NullID ID = "null"

// IntID makes the identifier of a number.
func IntID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// TextID makes the identifier of a string.
func TextID(s string) ID { return ID(rawjson.AppendText(nil, s)) }

// Int is the number the ID stands for, if it is a whole one.
func (id ID) Int() (int64, bool) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	return n, err == nil
}

// Message is one JSON-RPC 2.0 message: a request (ID and Method), a
// notification (Method alone), or a response (ID and either Result or Error).
type Message struct {
	ID     ID
	Method string
	Params json.RawMessage // nil when absent
	Result json.RawMessage
	Error  *Error
}

// IsRequest tells whether the message is a request, which is answered.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != "" }

// IsNotification tells whether the message is a notification, which is not answered.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == "" }

// IsResponse tells whether the message is an answer.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Parse reads one message. It checks the whole text as JSON but takes only the
// top level apart; keys match exactly, and a repeated or contradicting one is an
// error, so that no later reader understands the message differently. Batches are
// refused: no supported revision of MCP needs them.
//
// The error is an *Error ready to be sent back (CodeParse, CodeInvalidRequest);
// with CodeInvalidRequest the message still carries the ID where one was readable.
func Parse(data []byte) (Message, error) {
	var m Message
	if !utf8.Valid(data) {
		return m, Errorf(CodeParse, "message is not valid UTF-8")
	}
	switch rawjson.First(data) {
	case '{':
	case '[':
		return m, Errorf(CodeInvalidRequest, "batches are not supported: send one message at a time")
	default:
		return m, Errorf(CodeParse, "message is not a JSON object")
	}
	var p parts
	members := rawjson.WalkChecked(data)
	for members.Next() {
		if wrong := p.take(&members); wrong != nil {
			return Message{ID: p.readableID()}, wrong
		}
	}
	if err := members.End(); err != nil {
		return m, Errorf(CodeParse, "%v", err)
	}
	return p.message()
}

// parts are the raw values of the keys JSON-RPC knows.
type parts struct{ version, id, method, params, result, failure []byte }

func (p *parts) take(m *rawjson.Members) *Error {
	slot := p.slot(m.Name())
	if slot == nil {
		return nil
	}
	if *slot != nil {
		return Errorf(CodeInvalidRequest, "key %s appears twice", m.Key)
	}
	*slot = m.Value
	return nil
}

func (p *parts) slot(key []byte) *[]byte {
	switch string(key) {
	case "jsonrpc":
		return &p.version
	case "id":
		return &p.id
	case "method":
		return &p.method
	case "params":
		return &p.params
	case "result":
		return &p.result
	case "error":
		return &p.failure
	}
	return nil
}

// message makes a message of the parts, or reports what is wrong with them.
func (p *parts) message() (Message, error) {
	id := p.readableID()
	p.forgiveNulls()
	refuse := func(why string) (Message, error) {
		return Message{ID: id}, Errorf(CodeInvalidRequest, "%s", why)
	}
	switch {
	case string(p.version) != `"2.0"`:
		return refuse(`"jsonrpc" must be "2.0"`)
	case p.id != nil && id == "":
		return refuse(`"id" must be a string or a number`)
	case p.method != nil:
		if p.result != nil || p.failure != nil {
			return refuse("message is both a request and a response")
		}
		return p.request(id, refuse)
	case p.id == nil:
		return refuse(`message has neither "method" nor "id"`)
	case (p.result == nil) == (p.failure == nil):
		return refuse(`a response needs either "result" or "error"`)
	}
	return p.response(id), nil
}

func (p *parts) response(id ID) Message {
	m := Message{ID: id, Result: p.result}
	if p.failure != nil {
		m.Error = ParseError(p.failure)
	}
	return m
}

func (p *parts) request(id ID, refuse func(string) (Message, error)) (Message, error) {
	if p.method[0] != '"' || len(p.method) == 2 {
		return refuse(`"method" must be a string that is not empty`)
	}
	if id == NullID {
		return refuse(`"id" of a request must not be null`)
	}
	if p.params != nil && p.params[0] != '{' {
		if string(p.params) != "null" {
			return refuse(`"params" must be an object`)
		}
		p.params = nil
	}
	return Message{ID: id, Method: intern(rawjson.Unquote(p.method)), Params: p.params}, nil
}

// forgiveNulls removes a null result or error from a response that has the other one, as
// in older versions of JSON-RPC.
func (p *parts) forgiveNulls() {
	switch {
	case p.result != nil && string(p.failure) == "null":
		p.failure = nil
	case p.failure != nil && string(p.result) == "null":
		p.result = nil
	}
}

func (p *parts) readableID() ID {
	if len(p.id) == 0 {
		return ""
	}
	switch c := p.id[0]; {
	case c == '"' && bytes.IndexByte(p.id, '\\') >= 0:
		return TextID(string(rawjson.Unquote(p.id)))
	case c == '"', string(p.id) == "null":
		return ID(p.id)
	case c == '-', '0' <= c && c <= '9':
		return numberID(p.id)
	}
	return ""
}

// numberID writes a whole number in a form that can be compared: some peers have no
// integers and send 1 back as 1.0.
func numberID(raw []byte) ID {
	if bytes.ContainsAny(raw, ".eE") {
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return IntID(int64(n))
		}
	}
	return ID(raw)
}

// Append writes the message as one line of JSON, without a line end. Raw parts
// are written as they are, except that line ends between their tokens become
// spaces: both stdio and server-sent events end a message at the line end.
func (m *Message) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if m.ID != "" {
		dst = append(append(dst, `,"id":`...), m.ID...)
	}
	switch {
	case m.Method != "":
		dst = rawjson.AppendText(append(dst, `,"method":`...), m.Method)
		if m.Params != nil {
			dst = append(append(dst, `,"params":`...), m.Params...)
		}
	case m.Error != nil:
		dst = m.Error.append(append(dst, `,"error":`...))
	case m.Result != nil:
		dst = append(append(dst, `,"result":`...), m.Result...)
	default:
		dst = append(dst, `,"result":{}`...)
	}
	dst = append(dst, '}')
	rawjson.Flatten(dst[start:])
	return dst
}

// MarshalJSON writes the message for encoding/json.
func (m Message) MarshalJSON() ([]byte, error) { return m.Append(nil), nil }

// UnmarshalJSON reads the message for encoding/json, as Parse does.
func (m *Message) UnmarshalJSON(data []byte) (err error) {
	*m, err = Parse(bytes.Clone(data))
	return err
}

// Request makes a request.
func Request(id ID, method string, params json.RawMessage) Message {
	return Message{ID: id, Method: method, Params: params}
}

// Notification makes a notification.
func Notification(method string, params json.RawMessage) Message {
	return Message{Method: method, Params: params}
}

// Answer makes the response to a request: err as an error when there is one,
// else result, where nil means the empty object.
func Answer(id ID, result json.RawMessage, err error) Message {
	if err != nil {
		return Message{ID: id, Error: ErrorFrom(err)}
	}
	if result == nil {
		result = json.RawMessage("{}")
	}
	return Message{ID: id, Result: result}
}

// Methods of MCP, both eras.
const (
	MethodInitialize = "initialize" // legacy
	MethodPing       = "ping"       // legacy
	MethodDiscover   = "server/discover"
	MethodListen     = "subscriptions/listen"

	MethodToolsList         = "tools/list"
	MethodToolsCall         = "tools/call"
	MethodPromptsList       = "prompts/list"
	MethodPromptsGet        = "prompts/get"
	MethodResourcesList     = "resources/list"
	MethodResourceTemplates = "resources/templates/list"
	MethodResourcesRead     = "resources/read"
	MethodSubscribe         = "resources/subscribe"   // legacy
	MethodUnsubscribe       = "resources/unsubscribe" // legacy
	MethodComplete          = "completion/complete"
	MethodSkillsList        = "skills/list"              // of the extension skills
	MethodSkillsGet         = "skills/get"               // likewise
	MethodDirectoryRead     = "resources/directory/read" // likewise
	MethodSetLevel          = "logging/setLevel"         // legacy

	MethodTasksGet    = "tasks/get"
	MethodTasksCancel = "tasks/cancel"
	MethodTasksUpdate = "tasks/update" // modern
	MethodTasksList   = "tasks/list"   // legacy
	MethodTasksResult = "tasks/result" // legacy

	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"

	NoteInitialized         = "notifications/initialized"
	NoteCancelled           = "notifications/cancelled"
	NoteProgress            = "notifications/progress"
	NoteMessage             = "notifications/message"
	NoteToolsChanged        = "notifications/tools/list_changed"
	NotePromptsChanged      = "notifications/prompts/list_changed"
	NoteResourcesChanged    = "notifications/resources/list_changed"
	NoteResourceUpdated     = "notifications/resources/updated"
	NoteTask                = "notifications/tasks"        // modern
	NoteTaskStatus          = "notifications/tasks/status" // legacy
	NoteRootsChanged        = "notifications/roots/list_changed"
	NoteElicitationComplete = "notifications/elicitation/complete"
	NoteListenAcknowledged  = "notifications/subscriptions/acknowledged"
	ResultComplete          = "complete"       // resultType of a modern result that is complete
	ResultInputRequired     = "input_required" // resultType of a modern result that asks for input
	ResultTask              = "task"           // resultType of the tasks extension
)

// intern returns text as a string. It does not allocate for methods and revisions that
// occur in every call.
func intern(text []byte) string {
	switch string(text) {
	case MethodToolsCall:
		return MethodToolsCall
	case MethodToolsList:
		return MethodToolsList
	case MethodPing:
		return MethodPing
	case MethodDiscover:
		return MethodDiscover
	case NoteProgress:
		return NoteProgress
	case NoteMessage:
		return NoteMessage
	case NoteCancelled:
		return NoteCancelled
	case ResultComplete:
		return ResultComplete
	case NewestModern:
		return NewestModern
	case NewestLegacy:
		return NewestLegacy
	}
	return string(text)
}

// Era is one of the two forms of MCP.
type Era uint8

// The eras. Legacy begins with initialize and has sessions. Modern has neither: every
// request is complete in itself.
const (
	Unknown Era = iota
	Legacy
	Modern
)

func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

// The supported revisions of the protocol.
const (
	Revision2024 = "2024-11-05"
	Revision2503 = "2025-03-26"
	Revision2506 = "2025-06-18"
	Revision2511 = "2025-11-25"
	Revision2607 = "2026-07-28"

	NewestLegacy = Revision2511
	NewestModern = Revision2607
)

// Revisions lists the supported revisions, newest first.
func Revisions() []string {
	return []string{Revision2607, Revision2511, Revision2506, Revision2503, Revision2024}
}

// EraOf is the era a revision belongs to; Unknown for one that is not supported.
func EraOf(revision string) Era {
	switch revision {
	case Revision2607:
		return Modern
	case Revision2511, Revision2506, Revision2503, Revision2024:
		return Legacy
	}
	return Unknown
}

// Negotiate is the revision a server answers an initialize request with: the
// requested one if it is of the era Legacy, otherwise the newest of that era.
func Negotiate(requested string) string {
	if EraOf(requested) == Legacy {
		return requested
	}
	return NewestLegacy
}
