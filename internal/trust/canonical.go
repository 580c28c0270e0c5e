package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// canonical writes JSON in one way only: members sorted by name, no blanks,
// strings escaped alike. Numbers keep their digits. Where an object has two
// members of one name both stay, so that a definition cannot show one of them to
// us and the other to somebody else; repeated tells that there are any. What is no
// JSON, or no text, stands for itself.
func canonical(raw []byte) (out []byte, repeated bool) {
	if !utf8.Valid(raw) {
		return slices.Clone(raw), false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w := writer{decoder: d}
	if err := w.value(); err != nil {
		return slices.Clone(raw), false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return slices.Clone(raw), false
	}
	return w.out.Bytes(), w.repeated
}

type writer struct {
	decoder  *json.Decoder
	out      bytes.Buffer
	repeated bool
}

func (w *writer) value() error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.object()
		}
		return w.array()
	case json.Number:
		w.out.WriteString(t.String())
	default:
		w.out.Write(encoded(t))
	}
	return nil
}

func (w *writer) array() error {
	w.out.WriteByte('[')
	for first := true; w.decoder.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	_, err := w.decoder.Token()
	return err
}

func (w *writer) object() error {
	type member struct {
		name string
		text []byte
	}
	var members []member
	for w.decoder.More() {
		token, err := w.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		inner := writer{decoder: w.decoder}
		if err := inner.value(); err != nil {
			return err
		}
		w.repeated = w.repeated || inner.repeated
		members = append(members, member{name, inner.out.Bytes()})
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.repeated = w.repeated || members[i-1].name == m.name
			w.out.WriteByte(',')
		}
		w.out.Write(encoded(m.name))
		w.out.WriteByte(':')
		w.out.Write(m.text)
	}
	w.out.WriteByte('}')
	_, err := w.decoder.Token()
	return err
}

// encoded is a scalar as JSON, with nothing escaped that need not be.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // scalars always encode
	return bytes.TrimRight(b.Bytes(), "\n")
}

// digestOf is the SHA-256 of canonical JSON.
func digestOf(definition []byte) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:])
}
