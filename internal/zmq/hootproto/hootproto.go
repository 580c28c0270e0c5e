// Package hootproto encodes and decodes HOOT02 and its predecessor HOOT01, the
// protocol over ZeroMQ between a client and a backend that provides tools: messages
// of seven frames with a command, an id and a body in JSON or MessagePack.
// docs/backends.md is its specification, and testdata/vectors.json has messages for
// testing other implementations.
//
// It does not use sockets: a message is a list of frames, as any ZeroMQ library
// sends and receives them.
package hootproto

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// The versions of the protocol. A message begins with its version, after the frames
// that name the sender. In HOOT01 a heartbeat and its answer look alike; HOOT02 has
// HeartbeatReply.
const (
	Hoot01 = "HOOT01"
	Hoot02 = "HOOT02"
)

// Protocols returns all versions, the oldest first.
func Protocols() []string { return []string{Hoot01, Hoot02} }

// Command is the purpose of a message.
type Command uint16

// The commands.
const (
	// Ready carries a backend's Catalog; without a body it asks the backend for it.
	Ready Command = 1
	// Request has exactly one Reply with the same id.
	Request Command = 2
	// Reply answers a Request.
	Reply Command = 3
	// Heartbeat checks that the peer is alive; the answer is a HeartbeatReply with the
	// same id, or a Heartbeat in HOOT01.
	Heartbeat Command = 4
	// Disconnect announces that the sender will disconnect.
	Disconnect Command = 5
	// HeartbeatReply answers a Heartbeat. HOOT01 does not have it.
	HeartbeatReply Command = 6
)

// String is the command's name.
func (c Command) String() string {
	names := [...]string{
		Ready: "ready", Request: "request", Reply: "reply",
		Heartbeat: "heartbeat", Disconnect: "disconnect", HeartbeatReply: "heartbeat reply",
	}
	if int(c) < len(names) && names[c] != "" {
		return names[c]
	}
	return "command " + strconv.Itoa(int(c))
}

// ContentType is the encoding of a body.
type ContentType uint16

// The content types.
const (
	Empty   ContentType = 0 // no body
	MsgPack ContentType = 1
	Binary  ContentType = 2 // bytes as they are
	JSON    ContentType = 3
)

// String is the content type's name.
func (c ContentType) String() string {
	names := [...]string{Empty: "empty", MsgPack: "msgpack", Binary: "binary", JSON: "json"}
	if int(c) < len(names) {
		return names[c]
	}
	return "content type " + strconv.Itoa(int(c))
}

// ID identifies a request and its reply. It is a UUID.
type ID [16]byte

// NewID returns a random ID.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads the text form of an ID, with or without its hyphens.
func ParseID(text string) (ID, error) {
	var id ID
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(id) {
		return id, fault.New(fault.InvalidParams, "read id %.40q", text).
			WithHint("an id is a UUID such as 6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	}
	return ID(raw), nil
}

// String is the ID in the form of a UUID.
func (id ID) String() string {
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// malformed is the error for an invalid message.
func malformed(format string, args ...any) *fault.Error {
	return fault.New(fault.Upstream, format, args...).
		WithHint("the other end does not follow docs/backends.md")
}

// The positions of the frames, counted from the version.
const (
	atCommand = iota + 1
	atContent
	atID
	atService
	atTrace
	atBody
	frameCount
)

// Message is one message.
type Message struct {
	// Identity is the frames before the version: at a ROUTER, the address to reply
	// to.
	Identity [][]byte
	// Protocol is the version of the protocol; empty means Hoot01, which all peers
	// understand.
	Protocol string
	Command  Command
	Content  ContentType
	ID       ID
	// Service is the name of the backend; it may be empty.
	Service string
	// Traceparent is the W3C trace context the message belongs to, or empty.
	Traceparent string
	Body        []byte
}

// New returns a message without a body, with a new id.
func New(command Command, service string) Message {
	return Message{Command: command, ID: NewID(), Service: service}
}

// Answer returns a message without a body that answers m: to the same peer, in the
// same version, with the same id, service and trace.
func (m Message) Answer(command Command) Message {
	m.Command, m.Content, m.Body = command, Empty, nil
	return m
}

// HeartbeatReply returns the answer to a heartbeat in the heartbeat's version.
func (m Message) HeartbeatReply() Message {
	if m.Protocol == Hoot02 {
		return m.Answer(HeartbeatReply)
	}
	return m.Answer(Heartbeat)
}

// With returns m with v as its body. For Binary, v is a []byte, which is not
// copied.
func (m Message) With(content ContentType, v any) (Message, error) {
	body, err := Encode(content, v)
	m.Content, m.Body = content, body
	return m, err
}

// JSON returns the body, JSON or MessagePack, as JSON.
func (m Message) JSON() (json.RawMessage, error) { return ToJSON(m.Content, m.Body) }

// Decode decodes the body into v like package json.
func (m Message) Decode(v any) error {
	raw, err := m.JSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the body of a %s", m.Command).
			WithHint("the other end does not follow docs/backends.md")
	}
	return nil
}

// Frames returns the frames on the wire. The body is shared, not copied.
func (m Message) Frames() [][]byte {
	fixed := make([]byte, 0, 20)
	fixed = binary.BigEndian.AppendUint16(fixed, uint16(m.Command))
	fixed = binary.BigEndian.AppendUint16(fixed, uint16(m.Content))
	fixed = append(fixed, m.ID[:]...)
	frames := make([][]byte, 0, len(m.Identity)+frameCount)
	frames = append(frames, m.Identity...)
	return append(frames, []byte(cmp.Or(m.Protocol, Hoot01)), fixed[0:2:2], fixed[2:4:4], fixed[4:20:20],
		[]byte(m.Service), []byte(m.Traceparent), m.Body)
}

// Parse parses a message. The frames before the version are the sender's identity.
// The message shares memory with frames.
func Parse(frames [][]byte) (Message, error) {
	var m Message
	start := 0
	for start < len(frames) && !isVersion(frames[start]) {
		start++
	}
	if start == len(frames) {
		return m, malformed("read message: none of its %d frames is %s", len(frames), strings.Join(Protocols(), " or "))
	}
	m.Identity, frames = frames[:start:start], frames[start:]
	m.Protocol = string(frames[0])
	if len(frames) != frameCount {
		return m, malformed("read message: %d frames from %s on, not %d", len(frames), m.Protocol, frameCount)
	}
	if err := m.fixed(frames); err != nil {
		return m, err
	}
	if !utf8.Valid(frames[atService]) || !utf8.Valid(frames[atTrace]) {
		return m, malformed("read message: the service or the traceparent is not UTF-8")
	}
	m.Service, m.Traceparent = string(frames[atService]), string(frames[atTrace])
	m.Body = frames[atBody]
	if m.Content == Empty && len(m.Body) > 0 {
		return m, malformed("read message: content type empty with a body of %d bytes", len(m.Body))
	}
	return m, nil
}

func isVersion(frame []byte) bool { return string(frame) == Hoot01 || string(frame) == Hoot02 }

// fixed reads the frames of fixed length.
func (m *Message) fixed(frames [][]byte) error {
	for at, size := range [...]int{atCommand: 2, atContent: 2, atID: len(m.ID)} {
		if at > 0 && len(frames[at]) != size {
			return malformed("read message: frame %d has %d bytes, not %d", at, len(frames[at]), size)
		}
	}
	m.Command = Command(binary.BigEndian.Uint16(frames[atCommand]))
	m.Content = ContentType(binary.BigEndian.Uint16(frames[atContent]))
	m.ID = ID(frames[atID])
	if last := m.lastCommand(); m.Command < Ready || m.Command > last {
		return malformed("read message: unknown %s", m.Command)
	}
	if m.Content > JSON {
		return malformed("read message: unknown %s", m.Content)
	}
	return nil
}

// lastCommand is the highest command of the message's version.
func (m *Message) lastCommand() Command {
	if m.Protocol == Hoot01 {
		return Disconnect
	}
	return HeartbeatReply
}

// Encode encodes v as a body. MessagePack is converted from JSON, so that a type
// needs only JSON tags and v may contain raw JSON.
func Encode(content ContentType, v any) ([]byte, error) {
	if content == Binary {
		raw, ok := v.([]byte)
		if !ok {
			return nil, fault.New(fault.Internal, "encode body: a binary body must be []byte, not %T", v)
		}
		return raw, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode body")
	}
	return FromJSON(content, raw)
}

// FromJSON converts JSON to a body of that content type.
func FromJSON(content ContentType, raw json.RawMessage) ([]byte, error) {
	switch content {
	case JSON:
		return raw, nil
	case MsgPack:
		return packJSON(raw)
	default:
		return nil, fault.New(fault.Internal, "encode body: %s cannot hold JSON", content)
	}
}

// ToJSON converts a body of JSON or MessagePack to JSON. It validates JSON and
// returns it unchanged.
func ToJSON(content ContentType, body []byte) (json.RawMessage, error) {
	switch content {
	case JSON:
		if !json.Valid(body) {
			return nil, malformed("read body: not JSON: %.40q", body)
		}
		return body, nil
	case MsgPack:
		return unpackJSON(body)
	default:
		return nil, malformed("read body: %s where JSON or MessagePack was expected", content)
	}
}

// tagged encodes v, which must be an object, with a first member "type".
func tagged(kind string, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	name, err := json.Marshal(kind)
	if err != nil {
		return nil, err
	}
	out.WriteString(`{"type":`)
	out.Write(name)
	if rest := bytes.TrimSpace(raw[1 : len(raw)-1]); len(rest) > 0 {
		out.WriteByte(',')
		out.Write(rest)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// kindOf returns the member "type" of an object.
func kindOf(raw json.RawMessage) (string, error) {
	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &tag); err != nil || tag.Type == "" {
		return "", malformed("read body: not an object with a type: %.40q", raw)
	}
	return tag.Type, nil
}
