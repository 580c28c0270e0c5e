package sse_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/mcp/wire"
)

func readEvents(r *sse.Reader) (events []sse.Event, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	text := "\ufeff: hello\n\nid: 1\nevent: message\ndata: {\"a\":1}\n\ndata:x\r\ndata: y\r\n\r\nretry: 250\rdata\r\rid:\nunknown: z\nnocolon\ndata: last\n\ndata: cut off"
	want := []sse.Event{
		{Name: "message", ID: "1", Data: []byte(`{"a":1}`)},
		{ID: "1", Data: []byte("x\ny")},
		{ID: "1", Retry: 250 * time.Millisecond, Data: nil},
		{Data: []byte("last")},
	}
	for name, in := range map[string]io.Reader{
		"whole":        strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
	} {
		got, err := readEvents(sse.NewReader(in, 0))
		if !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestEventReaderStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader("data: "), iotest.DataErrReader(strings.NewReader(strings.Repeat("x", 1<<20))))
	if _, err := readEvents(sse.NewReader(endless, 64<<10)); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("one long line: %v", err)
	}
	many := strings.NewReader(strings.Repeat("data: x\n", 64<<10))
	if _, err := readEvents(sse.NewReader(many, 64<<10)); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("many short lines: %v", err)
	}
	fine := strings.NewReader(strings.Repeat("data: x\n\n", 64<<10))
	if got, err := readEvents(sse.NewReader(fine, 64<<10)); !errors.Is(err, io.EOF) || len(got) != 64<<10 {
		t.Errorf("many small events: %d, %v", len(got), err)
	}
}

func TestAppendEventCannotBeForged(t *testing.T) {
	t.Parallel()
	got := string(sse.Append(nil, sse.Event{Name: "a\ndata: evil", ID: "1\r2", Data: []byte("x\r\ny\rz")}))
	if want := "event: adata: evil\nid: 12\ndata: x\ndata: y\ndata: z\n\n"; got != want {
		t.Errorf("Append = %q, want %q", got, want)
	}
	if got := string(sse.AppendComment(nil, "hi\nthere")); got != ": hithere\n\n" {
		t.Errorf("AppendComment = %q", got)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: x\n\n"), []byte("y"))
	f.Add([]byte(": c\r\rdata\rdata: \r\n\n"), []byte("a\nb"))
	f.Fuzz(func(t *testing.T, stream, data []byte) {
		whole, err := readEvents(sse.NewReader(bytes.NewReader(stream), 1<<10))
		slow, slowErr := readEvents(sse.NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 1<<10))
		if !reflect.DeepEqual(whole, slow) || !errors.Is(slowErr, errors.Unwrap(err)) && !errors.Is(slowErr, err) {
			t.Fatalf("%q reads as %+v (%v) at once and as %+v (%v) byte by byte", stream, whole, err, slow, slowErr)
		}
		got, err := readEvents(sse.NewReader(bytes.NewReader(sse.Append(nil, sse.Event{Data: data})), 1<<20))
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if !errors.Is(err, io.EOF) || len(got) != 1 || string(got[0].Data) != text {
			t.Fatalf("%q came back as %+v, %v", data, got, err)
		}
	})
}
