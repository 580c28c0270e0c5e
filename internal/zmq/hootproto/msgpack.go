package hootproto

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/luanette/luanette/internal/base/fault"
)

// maxDepth is how deep MessagePack may be nested.
const maxDepth = 512

// unpackJSON converts MessagePack to JSON. Types that JSON lacks are converted:
// binary to base64, timestamps to RFC 3339, numeric keys to strings, NaN and
// infinities to null. Other extensions are an error.
func unpackJSON(body []byte) (json.RawMessage, error) {
	src := bytes.NewReader(body)
	u := unpacker{src: src, dec: msgpack.NewDecoder(src)}
	u.json = json.NewEncoder(&u.out)
	u.json.SetEscapeHTML(false)
	err := u.value(maxDepth)
	if err == nil && src.Len() > 0 {
		err = errors.New("trailing bytes after the value")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read MessagePack at byte %d", len(body)-src.Len()).
			WithHint("the other end does not follow docs/backends.md")
	}
	return u.out.Bytes(), nil
}

// unpacker converts one body to JSON while reading it. It allocates memory for an
// announced length only if the body has that many bytes left.
type unpacker struct {
	src  *bytes.Reader
	dec  *msgpack.Decoder
	out  bytes.Buffer
	json *json.Encoder
}

// value writes the next value, which may be nested depth levels deep.
func (u *unpacker) value(depth int) error {
	code, err := u.dec.PeekCode()
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if depth == 0 {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch {
	case code == msgpcode.Nil:
		u.out.WriteString("null")
		return u.dec.DecodeNil()
	case code == msgpcode.True || code == msgpcode.False:
		b, err := u.dec.DecodeBool()
		u.out.WriteString(strconv.FormatBool(b))
		return err
	case msgpcode.IsString(code):
		s, err := u.bytes()
		return errors.Join(err, u.text(string(s)))
	case msgpcode.IsBin(code):
		b, err := u.bytes()
		return errors.Join(err, u.text(base64.StdEncoding.EncodeToString(b)))
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		return u.array(depth)
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		return u.object(depth)
	case msgpcode.IsExt(code):
		return u.timestamp()
	default:
		return u.number(code)
	}
}

func (u *unpacker) array(depth int) error {
	n, err := u.dec.DecodeArrayLen()
	u.out.WriteByte('[')
	for i := 0; i < n && err == nil; i++ {
		if i > 0 {
			u.out.WriteByte(',')
		}
		err = u.value(depth - 1)
	}
	u.out.WriteByte(']')
	return err
}

func (u *unpacker) object(depth int) error {
	n, err := u.dec.DecodeMapLen()
	u.out.WriteByte('{')
	for i := 0; i < n && err == nil; i++ {
		if i > 0 {
			u.out.WriteByte(',')
		}
		if err = u.key(); err == nil {
			u.out.WriteByte(':')
			err = u.value(depth - 1)
		}
	}
	u.out.WriteByte('}')
	return err
}

// key writes a key, which is text or an integer.
func (u *unpacker) key() error {
	code, err := u.dec.PeekCode()
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if msgpcode.IsString(code) {
		s, err := u.bytes()
		return errors.Join(err, u.text(string(s)))
	}
	if code == msgpcode.Float || code == msgpcode.Double {
		return errors.New("a key is a floating-point number")
	}
	u.out.WriteByte('"')
	err = u.number(code)
	u.out.WriteByte('"')
	return err
}

func (u *unpacker) number(code byte) error {
	var text []byte
	switch code {
	case msgpcode.Float, msgpcode.Double:
		f, err := u.dec.DecodeFloat64()
		if err != nil {
			return err
		}
		bits := 64
		if code == msgpcode.Float {
			bits = 32
		}
		text = []byte("null")
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			text = strconv.AppendFloat(nil, f, 'g', -1, bits)
		}
	case msgpcode.Uint64:
		n, err := u.dec.DecodeUint64()
		if err != nil {
			return err
		}
		text = strconv.AppendUint(nil, n, 10)
	default:
		n, err := u.dec.DecodeInt64()
		if err != nil {
			return err
		}
		text = strconv.AppendInt(nil, n, 10)
	}
	u.out.Write(text)
	return nil
}

// timestamp writes a timestamp, the only extension MessagePack itself defines.
func (u *unpacker) timestamp() error {
	kind, n, err := u.dec.DecodeExtHeader()
	if err != nil {
		return err
	}
	if kind != -1 || n != 4 && n != 8 && n != 12 || n > u.src.Len() {
		return fmt.Errorf("unknown extension %d of %d bytes", kind, n)
	}
	b := make([]byte, n)
	if err := u.dec.ReadFull(b); err != nil {
		return err
	}
	var t time.Time
	switch n {
	case 4:
		t = time.Unix(int64(binary.BigEndian.Uint32(b)), 0)
	case 8:
		both := binary.BigEndian.Uint64(b)
		t = time.Unix(int64(both&(1<<34-1)), int64(both>>34))
	default:
		t = time.Unix(int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint32(b)))
	}
	return u.text(t.UTC().Format(time.RFC3339Nano))
}

// bytes reads the length and the bytes of a string or binary value.
func (u *unpacker) bytes() ([]byte, error) {
	n, err := u.dec.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if n > u.src.Len() {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	return b, u.dec.ReadFull(b)
}

// text writes a JSON string.
func (u *unpacker) text(s string) error {
	err := u.json.Encode(s)
	u.out.Truncate(u.out.Len() - 1) // its newline
	return err
}

// packJSON converts JSON to MessagePack, with sorted keys and numbers in their
// shortest form.
func packJSON(raw json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "encode MessagePack")
	}
	var out bytes.Buffer
	if err := pack(msgpack.NewEncoder(&out), v); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "encode MessagePack").
			WithHint("numbers must fit into 64 bits")
	}
	return out.Bytes(), nil
}

func pack(enc *msgpack.Encoder, v any) error {
	switch v := v.(type) {
	case nil:
		return enc.EncodeNil()
	case bool:
		return enc.EncodeBool(v)
	case string:
		return enc.EncodeString(v)
	case json.Number:
		return packNumber(enc, v.String())
	case []any:
		err := enc.EncodeArrayLen(len(v))
		for i := 0; i < len(v) && err == nil; i++ {
			err = pack(enc, v[i])
		}
		return err
	case map[string]any:
		err := enc.EncodeMapLen(len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			err = errors.Join(err, enc.EncodeString(key), pack(enc, v[key]))
		}
		return err
	default:
		return fmt.Errorf("a %T is not JSON", v)
	}
}

func packNumber(enc *msgpack.Encoder, text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return enc.EncodeInt(n)
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return enc.EncodeUint(n)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	return enc.EncodeFloat64(f)
}
