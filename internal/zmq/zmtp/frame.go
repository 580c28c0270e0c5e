package zmtp

import (
	"bufio"
	"encoding/binary"
	"io"
)

// The bits of a frame's first byte; the others are reserved and zero.
const (
	flagMore    = 1 << iota // a further frame of the same message follows
	flagLong                // the size is eight bytes, not one
	flagCommand             // the body is a command
)

// firstChunk is how much of a large frame is made room for before any of it has
// arrived, so that announcing gigabytes costs us nothing.
const firstChunk = 64 << 10

// maxCommand bounds commands in bytes, the handshake's among them.
const maxCommand = 64 << 10

// readFrame reads one frame; the body is the caller's. At most limit bytes of it
// are taken for a message, and maxCommand for a command.
func readFrame(in *bufio.Reader, limit int) (flags byte, body []byte, err error) {
	flags, err = in.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&(flagMore|flagCommand) == flagMore|flagCommand {
		return 0, nil, violation("read frame: no frame begins with %#02x", flags)
	}
	if flags&flagCommand != 0 {
		limit = maxCommand
	}
	size, err := readSize(in, flags&flagLong != 0)
	if err != nil {
		return 0, nil, cutShort(err)
	}
	if size > uint64(limit) {
		return 0, nil, violation("read frame: its %d bytes are more than %d", size, limit)
	}
	body, err = readBody(in, int(size))
	return flags, body, cutShort(err)
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

// cutShort tells an end inside a frame from one between two.
func cutShort(err error) error {
	if err == io.EOF { //nolint:errorlint // the readers return it bare, and only bare it means a clean end
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

// writeMessage writes the frames of a message.
func writeMessage(out *bufio.Writer, m Message) {
	last := len(m) - 1
	for _, body := range m[:last] {
		writeFrame(out, flagMore, body)
	}
	writeFrame(out, 0, m[last])
}
