package backup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The byte before each value of a row is its kind. Lengths and integers are varints.
const (
	isNull  = 'n'
	isFalse = 'f'
	isTrue  = 't'
	isInt   = 'i'
	isFloat = 'd' // 8 bytes, big-endian
	isText  = 's' // length, bytes
	isBytes = 'b' // likewise
)

// encode appends the values of a row, which have the types that database drivers
// return.
func encode(out *bytes.Buffer, row []any) error {
	var number [binary.MaxVarintLen64]byte
	sized := func(kind byte, size int) {
		out.WriteByte(kind)
		out.Write(number[:binary.PutUvarint(number[:], uint64(size))]) //nolint:gosec // a length
	}
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			out.WriteByte(isNull)
		case bool:
			kind := byte(isFalse)
			if v {
				kind = isTrue
			}
			out.WriteByte(kind)
		case int64:
			out.WriteByte(isInt)
			out.Write(number[:binary.PutVarint(number[:], v)])
		case float64:
			out.WriteByte(isFloat)
			out.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
		case string:
			sized(isText, len(v))
			out.WriteString(v)
		case []byte:
			sized(isBytes, len(v))
			out.Write(v)
		default:
			return fmt.Errorf("cannot back up a value of type %T", value)
		}
	}
	return nil
}

// rows reads rows with a number of columns; size is their total number of bytes.
type rows struct {
	from    *bufio.Reader
	columns int
	size    int64
}

// next returns the next row, or nil after the last.
func (r *rows) next() ([]any, error) {
	if _, err := r.from.Peek(1); errors.Is(err, io.EOF) || r.columns == 0 {
		return nil, nil
	}
	row := make([]any, r.columns)
	for i := range row {
		var err error
		if row[i], err = r.value(); err != nil {
			return nil, damaged("a row cannot be read: %v", err)
		}
	}
	return row, nil
}

func (r *rows) value() (any, error) {
	kind, err := r.from.ReadByte()
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	switch kind {
	case isNull:
		return nil, nil //nolint:nilnil // the value is NULL
	case isFalse, isTrue:
		return kind == isTrue, nil
	case isInt:
		return binary.ReadVarint(r.from)
	case isFloat:
		var bits [8]byte
		_, err := io.ReadFull(r.from, bits[:])
		return math.Float64frombits(binary.BigEndian.Uint64(bits[:])), err
	case isText:
		text, err := r.bytes()
		return string(text), err
	case isBytes:
		return r.bytes()
	}
	return nil, fmt.Errorf("unknown kind of value %q", kind)
}

// bytes never returns nil, which databases store as NULL.
func (r *rows) bytes() ([]byte, error) {
	size, err := binary.ReadUvarint(r.from)
	if err != nil {
		return nil, err
	}
	if size > uint64(r.size) { //nolint:gosec // not negative
		return nil, fmt.Errorf("a value of %d bytes in a portion of %d", size, r.size)
	}
	if size <= 1<<20 {
		value := make([]byte, size)
		_, err = io.ReadFull(r.from, value)
		return value, err
	}
	value, err := io.ReadAll(io.LimitReader(r.from, int64(size))) //nolint:gosec // at most r.size
	if err == nil && uint64(len(value)) < size {
		err = io.ErrUnexpectedEOF
	}
	return value, err
}
