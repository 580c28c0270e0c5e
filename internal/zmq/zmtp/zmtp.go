// Package zmtp implements ZMTP 3.1, the protocol between ZeroMQ sockets, so that
// the other end can be a program in any language with a ZeroMQ library. It
// supports the sockets DEALER, ROUTER, PUB and SUB over TCP and Unix sockets, without
// security or with CURVE. As in ZeroMQ, messages have several frames and arrive
// whole, lost connections are retried, and queues are limited.
//
// It differs from libzmq in that a message is only queued for an established
// connection: Send on a DEALER waits for one, and messages that a lost connection
// leaves unwritten are returned in the Disconnected event. Close drops queued messages (a linger of zero); Flush waits until
// they are written.
//
// Without Options.Curve there is no authentication and no encryption: listen on a
// loopback address or a Unix socket.
package zmtp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Kind is the messaging pattern of a socket.
type Kind uint8

// The kinds of sockets.
const (
	// Dealer dials one peer, sends to it and receives from it.
	Dealer Kind = iota + 1
	// Router listens, puts the sender's identity before each message it receives, and
	// takes the first frame of what it sends as the identity to send to.
	Router
	// Pub listens, and sends to every peer that subscribed to a prefix of the message.
	Pub
	// Sub dials, and receives messages that begin with one of its subscriptions.
	Sub
)

// String is the kind's name on the wire.
func (k Kind) String() string {
	switch k {
	case Dealer:
		return "DEALER"
	case Router:
		return "ROUTER"
	case Pub:
		return "PUB"
	case Sub:
		return "SUB"
	default:
		return "unknown kind"
	}
}

// accepts reports whether a socket of this kind may connect to the peer's kind.
func (k Kind) accepts(peer string) bool {
	switch k {
	case Dealer:
		return peer == "ROUTER" || peer == "DEALER" || peer == "REP"
	case Router:
		return peer == "DEALER" || peer == "ROUTER" || peer == "REQ"
	case Pub:
		return peer == "SUB" || peer == "XSUB"
	case Sub:
		return peer == "PUB" || peer == "XPUB"
	default:
		return false
	}
}

// Message is the frames of one message, at least one. The socket owns a message
// once it is sent; the receiver owns a message it received.
type Message [][]byte

// frameCost is added to the length of each frame: its header on the wire, so that
// empty frames count too.
const frameCost = 9

// size is the size of a message in queues and against limits, in bytes.
func (m Message) size() int {
	n := 0
	for _, frame := range m {
		n += len(frame) + frameCost
	}
	return n
}

// The errors of Send and Recv wrap these.
var (
	ErrClosed = errors.New("the socket is closed")
	ErrNoPeer = errors.New("no such peer is connected")
)

// contextError is the error of waiting until ctx ended.
func contextError(ctx context.Context) error {
	return fault.Wrap(fault.CodeOf(ctx.Err()), context.Cause(ctx), "")
}

// violation is the error for a peer that violates the protocol.
func violation(format string, args ...any) *fault.Error {
	return fault.New(fault.Upstream, format, args...).
		WithHint("check that the other end is a ZeroMQ socket of a compatible kind, without PLAIN or GSSAPI security")
}

// The bits of a frame's first byte; the others are reserved and zero.
const (
	flagMore    = 1 << iota // a further frame of the same message follows
	flagLong                // the size is eight bytes, not one
	flagCommand             // the body is a command
)

// firstChunk is how much is allocated for a large frame before any of it has
// arrived, so that a large announced size alone costs nothing.
const firstChunk = 64 << 10

// maxCommand is the largest command in bytes, including those of the handshake.
const maxCommand = 64 << 10

// readFrame reads one frame; the caller owns the body. The frame of a message may
// have limit bytes, a command maxCommand.
func readFrame(in *bufio.Reader, limit int) (flags byte, body []byte, err error) {
	flags, err = in.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&(flagMore|flagCommand) == flagMore|flagCommand {
		return 0, nil, violation("read frame: invalid flags %#02x", flags)
	}
	if flags&flagCommand != 0 {
		limit = maxCommand
	}
	size, err := readSize(in, flags&flagLong != 0)
	if err != nil {
		return 0, nil, midFrame(err)
	}
	if size > uint64(limit) {
		return 0, nil, violation("read frame: %d bytes exceed the limit of %d", size, limit)
	}
	body, err = readBody(in, int(size))
	return flags, body, midFrame(err)
}

func readSize(in *bufio.Reader, long bool) (uint64, error) {
	if !long {
		size, err := in.ReadByte()
		return uint64(size), err
	}
	var size [8]byte
	_, err := io.ReadFull(in, size[:])
	return binary.BigEndian.Uint64(size[:]), err
}

// readBody reads n bytes into memory that grows as they arrive.
func readBody(in io.Reader, n int) ([]byte, error) {
	body := make([]byte, min(n, firstChunk))
	for got := 0; ; {
		if _, err := io.ReadFull(in, body[got:]); err != nil {
			return nil, err
		}
		got = len(body)
		if got == n {
			return body, nil
		}
		grown := make([]byte, min(n, 2*got))
		copy(grown, body)
		body = grown
	}
}

// midFrame turns io.EOF within a frame into io.ErrUnexpectedEOF.
func midFrame(err error) error {
	if err == io.EOF { //nolint:errorlint // the readers return it unwrapped
		return io.ErrUnexpectedEOF
	}
	return err
}

// writeFrame writes one frame; the writer keeps the first error for Flush.
func writeFrame(out *bufio.Writer, flags byte, body []byte) {
	var head [9]byte
	n := 2
	if len(body) > 255 {
		n = 9
		head[0] = flags | flagLong
		binary.BigEndian.PutUint64(head[1:], uint64(len(body)))
	} else {
		head[0], head[1] = flags, byte(len(body))
	}
	_, _ = out.Write(head[:n])
	_, _ = out.Write(body)
}

// The commands we know. Others are ignored.
const (
	cmdReady     = "READY"
	cmdError     = "ERROR"
	cmdPing      = "PING"
	cmdPong      = "PONG"
	cmdSubscribe = "SUBSCRIBE"
	cmdCancel    = "CANCEL"
)

// command is the body of a command frame: length of the name, name, data.
func command(name string, data ...byte) []byte {
	body := make([]byte, 0, 1+len(name)+len(data))
	body = append(body, byte(len(name)))
	body = append(body, name...)
	return append(body, data...)
}

// splitCommand splits a command's body into name and data. Data shares its memory.
func splitCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || body[0] == 0 || len(body) < 1+int(body[0]) {
		return "", nil, violation("read command: the name is incomplete")
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// metadata is the properties of a socket, the content of its READY.
func metadata(kind Kind) []byte {
	var data []byte
	data = appendProperty(data, "Socket-Type", kind.String())
	if kind == Dealer || kind == Router {
		data = appendProperty(data, "Identity", "") // a ROUTER makes one
	}
	return data
}

func appendProperty(data []byte, name, value string) []byte {
	data = append(data, byte(len(name)))
	data = append(data, name...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(value)))
	return append(data, value...)
}

// properties reads the metadata of a READY. Names are case-insensitive and
// returned in lower case; of duplicates the first counts.
func properties(data []byte) (map[string]string, error) {
	found := make(map[string]string)
	for len(data) > 0 {
		n := 1 + int(data[0])
		if n == 1 || len(data) < n+4 {
			return nil, violation("read READY: a property's name is incomplete")
		}
		name := strings.ToLower(string(data[1:n]))
		size := binary.BigEndian.Uint32(data[n:])
		data = data[n+4:]
		if uint64(size) > uint64(len(data)) {
			return nil, violation("read READY: the property %q is incomplete", name)
		}
		if _, twice := found[name]; !twice {
			found[name] = string(data[:size])
		}
		data = data[size:]
	}
	return found, nil
}

// reason is the text of an ERROR command.
func reason(data []byte) string {
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return "no reason given"
	}
	return string(data[1 : 1+int(data[0])])
}

// refusal is the ERROR command with a reason, truncated to 255 bytes.
func refusal(why string) []byte { return command(cmdError, refusalText(why)...) }

// refusalText is the content of an ERROR.
func refusalText(why string) []byte {
	why = why[:min(len(why), 255)]
	return append([]byte{byte(len(why))}, why...)
}

// tick is the unit of the time to live in a PING.
const tick = 100 * time.Millisecond

// ping is a PING. After ttl without a message from us the peer may disconnect.
func ping(ttl time.Duration) []byte {
	ticks := min((ttl+tick-1)/tick, 1<<16-1)
	return command(cmdPing, byte(ticks>>8), byte(ticks))
}

// splitPing reads a PING: how long the sender may be silent afterwards, and the
// context to return in the PONG.
func splitPing(data []byte) (ttl time.Duration, context []byte, err error) {
	if len(data) < 2 || len(data) > 2+16 {
		return 0, nil, violation("read PING: %d bytes", len(data))
	}
	return time.Duration(binary.BigEndian.Uint16(data)) * tick, data[2:], nil
}
