package lua

import (
	"errors"
	"fmt"
	"io"
)

// streamKind is the kind of files in snapshots. Only standard streams and
// closed files can be carried: an open file belongs to one state.
const streamKind = "io.stream"

// The standard streams by what they are saved as.
const (
	streamInput  = "stdin"
	streamOutput = "stdout"
	streamError  = "stderr"
	streamClosed = "closed"
)

// forkFor gives the state to a stream of its own in place of s.
func (s *stream) forkFor(to *State) (*stream, error) {
	switch {
	case s.closed:
		return &stream{closed: true, finish: s.finish}, nil
	case s.finish != nil:
		return nil, errors.New("an open file cannot be forked")
	case s.in != nil:
		return newInputStream(to.stdin()), nil
	}
	c := newOutputStream(s.direct)
	c.flushes, c.errors = s.flushes, s.errors
	return c, nil
}

// Save gives the form of s in a snapshot.
func (s *stream) Save() (kind string, data []byte, err error) {
	switch {
	case s.closed:
		return streamKind, []byte(streamClosed), nil
	case s.finish != nil:
		return "", nil, errors.New("an open file cannot be saved")
	case s.in != nil:
		return streamKind, []byte(streamInput), nil
	case s.errors:
		return streamKind, []byte(streamError), nil
	}
	return streamKind, []byte(streamOutput), nil
}

// restoreStream makes a stream of s out of its form in a snapshot.
func restoreStream(s *State, data []byte) (any, error) {
	switch string(data) {
	case streamInput:
		return newInputStream(s.stdin()), nil
	case streamOutput:
		return newOutputStream(s.stdout()), nil
	case streamError:
		return newErrorStream(s.stderr()), nil
	case streamClosed:
		return &stream{closed: true, finish: func(error) []Value { return nil }}, nil
	}
	return nil, fmt.Errorf("unknown stream %q", data)
}

// newErrorStream wraps the host's error output.
func newErrorStream(w io.Writer) *stream {
	s := newOutputStream(w)
	s.errors = true
	return s
}

// Fork gives the list of a state that has opened no files yet.
func (openFiles) Fork() (any, error) { return openFiles{}, nil }
