package hootproto

import (
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// Where things stand after the magic.
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
	// Identity is what stood before the magic: whom to answer, at a ROUTER.
	Identity [][]byte
	Command  Command
	Content  ContentType
	ID       ID
	// Service is the name of the backend; it may be empty.
	Service string
	// Traceparent is the W3C trace context the message belongs to, or empty.
	Traceparent string
	Body        []byte
}

// New is a message without a body, with an id of its own.
func New(command Command, service string) Message {
	return Message{Command: command, ID: NewID(), Service: service}
}

// Answer is a message without a body that answers f: to the same peer, with the
// same id, service and trace.
func (f Message) Answer(command Command) Message {
	f.Command, f.Content, f.Body = command, Empty, nil
	return f
}

// With is f with v as its body. For Binary, v is a []byte, and it is not copied.
func (f Message) With(content ContentType, v any) (Message, error) {
	body, err := Encode(content, v)
	f.Content, f.Body = content, body
	return f, err
}

// JSON is the body as JSON, whether it came as that or as MessagePack.
func (f Message) JSON() (json.RawMessage, error) { return ToJSON(f.Content, f.Body) }

// Decode reads the body into v as package json does.
func (f Message) Decode(v any) error {
	raw, err := f.JSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the body of a %s", f.Command).
			WithHint("the other end does not keep to docs/backends.md")
	}
	return nil
}

// Frames is the message as it goes over the wire. Bodies are shared, not copied.
func (f Message) Frames() [][]byte {
	fixed := make([]byte, 0, 20)
	fixed = binary.BigEndian.AppendUint16(fixed, uint16(f.Command))
	fixed = binary.BigEndian.AppendUint16(fixed, uint16(f.Content))
	fixed = append(fixed, f.ID[:]...)
	frames := make([][]byte, 0, len(f.Identity)+frameCount)
	frames = append(frames, f.Identity...)
	return append(frames, []byte(Magic), fixed[0:2:2], fixed[2:4:4], fixed[4:20:20],
		[]byte(f.Service), []byte(f.Traceparent), f.Body)
}

// Parse reads a message. What stands before the magic is the sender's identity.
// The frame shares memory with frames.
func Parse(frames [][]byte) (Message, error) {
	var f Message
	start := 0
	for start < len(frames) && string(frames[start]) != Magic {
		start++
	}
	if start == len(frames) {
		return f, malformed("read message: none of its %d frames is %s", len(frames), Magic)
	}
	f.Identity, frames = frames[:start:start], frames[start:]
	if len(frames) != frameCount {
		return f, malformed("read message: %d frames from %s on, not %d", len(frames), Magic, frameCount)
	}
	if err := f.fixed(frames); err != nil {
		return f, err
	}
	if !utf8.Valid(frames[atService]) || !utf8.Valid(frames[atTrace]) {
		return f, malformed("read message: the service or the traceparent is not UTF-8")
	}
	f.Service, f.Traceparent = string(frames[atService]), string(frames[atTrace])
	f.Body = frames[atBody]
	if f.Content == Empty && len(f.Body) > 0 {
		return f, malformed("read message: content type empty with a body of %d bytes", len(f.Body))
	}
	return f, nil
}

// fixed reads the frames of fixed length.
func (f *Message) fixed(frames [][]byte) error {
	for at, size := range [...]int{atCommand: 2, atContent: 2, atID: len(f.ID)} {
		if at > 0 && len(frames[at]) != size {
			return malformed("read message: frame %d has %d bytes, not %d", at, len(frames[at]), size)
		}
	}
	f.Command = Command(binary.BigEndian.Uint16(frames[atCommand]))
	f.Content = ContentType(binary.BigEndian.Uint16(frames[atContent]))
	f.ID = ID(frames[atID])
	if f.Command < Ready || f.Command > Disconnect {
		return malformed("read message: there is no %s", f.Command)
	}
	if f.Content > JSON {
		return malformed("read message: there is no %s", f.Content)
	}
	return nil
}
