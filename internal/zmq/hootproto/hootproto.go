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
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

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
