// Package sse reads and writes server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// MaxEvent is the default size limit of one event: 16 MiB.
const MaxEvent = 16 << 20

// ErrTooLarge is returned for an event that exceeds the limit of its reader.
var ErrTooLarge = errors.New("message too large")

// Event is one server-sent event.
type Event struct {
	Name  string        // empty means "message"
	ID    string        // the stream's last event id as of this event
	Retry time.Duration // zero: not set
	Data  []byte
}

// Reader reads server-sent events.
type Reader struct {
	in      *bufio.Reader
	max     int
	lastID  string
	retry   time.Duration
	afterCR bool
	started bool
}

// NewReader returns a reader of events of up to max bytes; zero or less means
// MaxEvent.
func NewReader(in io.Reader, max int) *Reader {
	if max <= 0 {
		max = MaxEvent
	}
	return &Reader{in: bufio.NewReaderSize(in, 4<<10), max: max}
}

// LastID returns the id to resume after.
func (r *Reader) LastID() string { return r.lastID }

// Retry returns how long the server asked to wait before reconnecting, or zero if it
// did not.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next reads the next event that has data. Its Data belongs to the caller. At the end
// of the stream it returns io.EOF. An incomplete event at the end is dropped, as the
// standard requires. ErrTooLarge is final.
func (r *Reader) Next() (Event, error) {
	var e Event
	hasData := false
	size := 0
	for {
		line, err := r.line(r.max - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if hasData {
				e.ID = r.lastID
				return e, nil
			}
			e, size = Event{}, 0
			continue
		}
		field, value := splitField(line)
		switch string(field) {
		case "data":
			if hasData {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
			hasData = true
		case "event":
			e.Name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				r.lastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = time.Duration(ms) * time.Millisecond
				r.retry = e.Retry
			}
		}
	}
}

func splitField(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return field, value
}

// line reads up to \n, \r or \r\n and returns the line without its end. The slice is
// valid until the next call.
func (r *Reader) line(budget int) ([]byte, error) {
	var long []byte
	for {
		window, err := r.window()
		if err != nil {
			return nil, err
		}
		end := lineEnd(window)
		take := window
		if end >= 0 {
			take = window[:end]
		}
		if len(long)+len(take) > budget {
			return nil, fmt.Errorf("read event over %d bytes: %w", r.max, ErrTooLarge)
		}
		if end < 0 {
			long = append(long, take...)
			r.skip(len(take))
			continue
		}
		r.afterCR = window[end] == '\r'
		if long != nil {
			long = append(long, take...)
			take = long
		}
		// The bytes stay in the buffer until the next fill, so take is still valid.
		r.skip(end + 1)
		return take, nil
	}
}

// window returns the buffered bytes, and fills an empty buffer. It skips a byte order
// mark and the second half of a \r\n.
func (r *Reader) window() ([]byte, error) {
	if !r.started {
		r.started = true
		if first, _ := r.in.Peek(1); string(first) == "\xef" {
			r.skip(len("\ufeff"))
		}
	}
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		window, _ := r.in.Peek(r.in.Buffered())
		if !r.afterCR {
			return window, nil
		}
		r.afterCR = false
		if window[0] != '\n' {
			return window, nil
		}
		r.skip(1)
	}
}

// skip skips n bytes; the next read returns an error if there are fewer.
func (r *Reader) skip(n int) { _, _ = r.in.Discard(n) }

func lineEnd(window []byte) int {
	end := bytes.IndexByte(window, '\n')
	if end >= 0 {
		window = window[:end]
	}
	if cr := bytes.IndexByte(window, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// Append writes an event. Newlines inside Data become further data lines. Those inside
// Name and ID, which would inject fields, are dropped.
func Append(dst []byte, e Event) []byte {
	if e.Name != "" {
		dst = appendField(dst, "event: ", e.Name)
	}
	if e.ID != "" {
		dst = appendField(dst, "id: ", e.ID)
	}
	if e.Retry > 0 {
		dst = appendField(dst, "retry: ", strconv.FormatInt(e.Retry.Milliseconds(), 10))
	}
	for rest := e.Data; ; {
		end := lineEnd(rest)
		dst = append(dst, "data: "...)
		if end < 0 {
			return append(append(dst, rest...), '\n', '\n')
		}
		dst = append(append(dst, rest[:end]...), '\n')
		if rest[end] == '\r' && end+1 < len(rest) && rest[end+1] == '\n' {
			end++
		}
		rest = rest[end+1:]
	}
}

// AppendComment writes a comment, which keeps an idle stream open.
func AppendComment(dst []byte, text string) []byte {
	return append(appendField(dst, ": ", text), '\n')
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	for i := range len(value) {
		if c := value[i]; c != '\n' && c != '\r' && c != 0 {
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}
