// Package hootproto is what is said over ZeroMQ between a front end and a backend
// that provides tools: seven frames that carry a command, an id and a body, and
// the bodies, in JSON or MessagePack. docs/backends.md is its specification, and
// testdata/vectors.json holds messages to check another implementation with.
//
// It knows nothing of sockets: a message is a list of frames, as a ZeroMQ
// library of any kind sends and receives them.
package hootproto

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Magic is the first frame of every message, after those that name the sender.
const Magic = "HOOT01"

// Command is what a message is for.
type Command uint16

// The commands.
const (
	// Ready tells what a backend can do; without a body it asks a backend to.
	Ready Command = 1
	// Request asks for something, and gets exactly one Reply with the same id.
	Request Command = 2
	// Reply answers a Request.
	Reply Command = 3
	// Heartbeat asks whether anybody is there; the answer is a Heartbeat with
	// the same id.
	Heartbeat Command = 4
	// Disconnect says that the sender is about to go.
	Disconnect Command = 5
)

// String is the command's name.
func (c Command) String() string {
	names := [...]string{Ready: "ready", Request: "request", Reply: "reply", Heartbeat: "heartbeat", Disconnect: "disconnect"}
	if int(c) < len(names) && names[c] != "" {
		return names[c]
	}
	return "command " + strconv.Itoa(int(c))
}

// ContentType is how a body is to be read.
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

// ID tells a request and its reply from all others. It is a UUID.
type ID [16]byte

// NewID is a random ID.
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

// malformed is a message that is not one of ours.
func malformed(format string, args ...any) *fault.Error {
	return fault.New(fault.Upstream, format, args...).
		WithHint("the other end does not keep to docs/backends.md")
}
