package smf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// maxVarint is the largest time or length a file can hold.
const maxVarint = 1<<28 - 1

// Encode writes the file. Events are written in order of Time, ties in the
// order given; a missing end_of_track is added at the last event's time. The
// file itself is not changed. Values a file cannot hold are an error that
// names track and event, counted from 1.
func (f *File) Encode() ([]byte, error) {
	out, err := f.encode()
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "write midi file")
	}
	return out, nil
}

func (f *File) encode() ([]byte, error) {
	division, err := f.Division.word()
	switch {
	case err != nil:
		return nil, err
	case f.Format < 0 || f.Format > 2:
		return nil, fault.New(fault.InvalidParams, "format %d is not 0, 1 or 2", f.Format)
	case len(f.Tracks) > 0xffff:
		return nil, fault.New(fault.InvalidParams, "%d tracks are more than 65535", len(f.Tracks))
	}
	w := &writer{out: make([]byte, 0, f.sizeHint())}
	head := w.open("MThd")
	w.uint16(uint16(f.Format))
	w.uint16(uint16(len(f.Tracks)))
	w.uint16(division)
	w.out = append(w.out, f.HeaderExtra...)
	w.close(head)
	extra := f.Extra
	for i := range f.Tracks {
		for len(extra) > 0 && extra[0].Before <= i {
			if err := w.chunk(extra[0]); err != nil {
				return nil, err
			}
			extra = extra[1:]
		}
		if err := w.track(f.Tracks[i]); err != nil {
			return nil, fmt.Errorf("track %d: %w", i+1, err)
		}
	}
	for _, c := range extra {
		if err := w.chunk(c); err != nil {
			return nil, err
		}
	}
	return append(w.out, f.Trailing...), nil
}

// sizeHint guesses the encoded size.
func (f *File) sizeHint() int {
	size := 64 + len(f.Trailing)
	for i := range f.Tracks {
		size += 16 + 4*len(f.Tracks[i].Events) + len(f.Tracks[i].Tail)
	}
	return size
}

// writer collects the bytes of a file.
type writer struct {
	out []byte
}

// open begins a chunk and returns the mark that close wants.
func (w *writer) open(kind string) int {
	w.out = append(append(w.out, kind...), 0, 0, 0, 0)
	return len(w.out)
}

// close fills in the size of the chunk opened at mark.
func (w *writer) close(mark int) {
	binary.BigEndian.PutUint32(w.out[mark-4:], uint32(len(w.out)-mark))
}

func (w *writer) uint16(v uint16) { w.out = binary.BigEndian.AppendUint16(w.out, v) }

func (w *writer) varint(v uint32) {
	for shift := 21; shift > 0; shift -= 7 {
		if v>>shift != 0 {
			w.out = append(w.out, byte(v>>shift)|0x80)
		}
	}
	w.out = append(w.out, byte(v&0x7f))
}

func (w *writer) chunk(c Chunk) error {
	if len(c.Type) != 4 || c.Type == "MTrk" {
		return fault.New(fault.InvalidParams, "%q cannot be the type of an extra chunk", c.Type).
			WithHint("a chunk type has four characters; tracks belong into Tracks")
	}
	mark := w.open(c.Type)
	w.out = append(w.out, c.Data...)
	w.close(mark)
	return nil
}

func (w *writer) track(t Track) error {
	mark := w.open("MTrk")
	var (
		now     int64
		running byte
	)
	for i, e := range sorted(t.Events) {
		if err := check(e, now); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		w.varint(uint32(e.Time - now))
		now = e.Time
		running = w.event(e, running)
	}
	w.out = append(w.out, t.Tail...)
	w.close(mark)
	return nil
}

// event writes all of e but its time. It takes and returns the running status.
func (w *writer) event(e Event, running byte) byte {
	if e.Kind.OnChannel() {
		status := byte(e.Kind) | e.Channel
		if !e.Running || status != running {
			w.out = append(w.out, status)
		}
		w.out = append(w.out, e.Data1)
		if e.Kind.dataLen() == 2 {
			w.out = append(w.out, e.Data2)
		}
		return status
	}
	w.out = append(w.out, byte(e.Kind))
	if e.Kind == Meta {
		w.out = append(w.out, byte(e.Meta))
	}
	w.varint(uint32(len(e.Bytes)))
	w.out = append(w.out, e.Bytes...)
	return 0
}

// check reports why a file cannot hold e after the time now.
func check(e Event, now int64) error {
	switch {
	case e.Time < 0 || e.Time-now > maxVarint:
		return fault.New(fault.InvalidParams, "%s: time %d is out of reach after %d", e.Kind, e.Time, now).
			WithHint("times are 0 or more, and at most %d ticks apart", maxVarint)
	case e.Kind.OnChannel() && e.Kind&0x0f == 0:
		return checkChannel(e)
	case e.Kind != Meta && e.Kind != SysEx && e.Kind != Escape:
		return fault.New(fault.InvalidParams, "unknown kind of event %#02x", uint8(e.Kind))
	case len(e.Bytes) > maxVarint:
		return fault.New(fault.InvalidParams, "%s: %d bytes are too many", e.Kind, len(e.Bytes))
	}
	return nil
}

func checkChannel(e Event) error {
	if e.Channel > 15 {
		return fault.New(fault.InvalidParams, "%s: channel %d is not 0 to 15", e.Kind, e.Channel)
	}
	for _, v := range []uint8{e.Data1, e.Data2} {
		if v > 127 {
			return fault.New(fault.InvalidParams, "%s: value %d is not 0 to 127", e.Kind, v)
		}
	}
	return nil
}

// sorted returns the events in order of time with one end_of_track at the end.
// Events that are so already come back as they are, not copied.
func sorted(events []Event) []Event {
	if inOrder(events) {
		return events
	}
	end := Track{Events: events}.End()
	sorted := make([]Event, 0, len(events)+1)
	for _, e := range events {
		if !e.Is(EndOfTrack) {
			sorted = append(sorted, e)
		}
	}
	if !slices.IsSortedFunc(sorted, byTime) {
		slices.SortStableFunc(sorted, byTime)
	}
	return append(sorted, End(end))
}

// inOrder reports whether times never go back and the one end_of_track is last.
func inOrder(events []Event) bool {
	var now int64
	for i := range events {
		if events[i].Time < now || events[i].Is(EndOfTrack) != (i == len(events)-1) {
			return false
		}
		now = events[i].Time
	}
	return len(events) > 0
}

// byTime orders events by time alone, for stable sorts.
func byTime(a, b Event) int { return cmp.Compare(a.Time, b.Time) }
