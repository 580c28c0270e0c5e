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
