package smf

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
)

// Decode reads a file. It copies data once and shares that copy with the
// events. An error names the byte at which the file is malformed; its details
// are {"offset": n}. More than MaxSize bytes are refused.
func Decode(data []byte) (*File, error) {
	if len(data) > MaxSize {
		return nil, fault.New(fault.Limit, "read midi file: %d bytes are more than %d", len(data), MaxSize).
			WithHint("split the piece into smaller files")
	}
	d := &decoder{data: bytes.Clone(data)}
	return d.file()
}

// decoder walks over the bytes of one file.
type decoder struct {
	data []byte
	pos  int
}

// fail returns the error for a malformed byte of the file.
func (d *decoder) fail(offset int, format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidParams, "read midi file: at byte %d: %s", offset, fmt.Sprintf(format, args...)).
		WithDetails(map[string]int{"offset": offset}).
		WithHint("the file is damaged or incomplete; fetch or export it again")
}

func (d *decoder) file() (*File, error) {
	f := &File{}
	declared, err := d.header(f)
	if err != nil {
		return nil, err
	}
	for d.pos < len(d.data) {
		more, err := d.chunk(f, declared)
		if err != nil {
			return nil, err
		}
		if !more {
			f.Trailing = d.data[d.pos:]
			break
		}
	}
	if len(f.Tracks) < declared {
		return nil, d.fail(len(d.data), "the file ends after %d of %d tracks", len(f.Tracks), declared)
	}
	return f, nil
}

// header reads the MThd chunk and returns its number of tracks.
func (d *decoder) header(f *File) (declared int, err error) {
	b := d.data
	if bytes.HasPrefix(b, []byte("RIFF")) {
		return 0, d.fail(0, "a RIFF file, not a midi file").WithHint("take the contents of its data chunk")
	}
	if !bytes.HasPrefix(b, []byte("MThd")) {
		return 0, d.fail(0, "no MThd header").WithHint("this is not a Standard MIDI File")
	}
	if len(b) < 14 {
		return 0, d.fail(len(b), "the file ends inside its header")
	}
	size := binary.BigEndian.Uint32(b[4:])
	if size < 6 || uint64(size) > uint64(len(b)-8) {
		return 0, d.fail(4, "a header of %d bytes", size)
	}
	f.Format = int(binary.BigEndian.Uint16(b[8:]))
	if f.Format > 2 {
		return 0, d.fail(8, "format %d is not 0, 1 or 2", f.Format)
	}
	if f.Division = divisionOf(binary.BigEndian.Uint16(b[12:])); f.Division == (Division{}) {
		return 0, d.fail(12, "a time division without ticks")
	}
	d.pos = 8 + int(size)
	if size > 6 {
		f.HeaderExtra = b[14:d.pos]
	}
	return int(binary.BigEndian.Uint16(b[10:])), nil
}

// chunk reads the next chunk. Once all promised tracks are there, bytes that
// form no chunk are not an error: then more is false.
func (d *decoder) chunk(f *File, declared int) (more bool, err error) {
	left := len(d.data) - d.pos
	complete := len(f.Tracks) >= declared
	if left < 8 {
		if complete {
			return false, nil
		}
		return false, d.fail(d.pos, "the file ends inside a chunk header")
	}
	kind := string(d.data[d.pos : d.pos+4])
	size := binary.BigEndian.Uint32(d.data[d.pos+4:])
	if uint64(size) > uint64(left-8) {
		if complete {
			return false, nil
		}
		return false, d.fail(d.pos, "a %q chunk of %d bytes, but only %d are left", kind, size, left-8)
	}
	start := d.pos + 8
	d.pos = start + int(size)
	if kind != "MTrk" {
		f.Extra = append(f.Extra, Chunk{Type: kind, Data: d.data[start:d.pos], Before: len(f.Tracks)})
		return true, nil
	}
	track, err := d.track(start, d.pos)
	if err != nil {
		return false, err
	}
	f.Tracks = append(f.Tracks, track)
	return true, nil
}

// track reads the events between two offsets.
func (d *decoder) track(pos, end int) (Track, error) {
	var (
		track   = Track{Events: make([]Event, 0, (end-pos)/4+1)}
		now     int64
		running byte
	)
	for pos < end {
		delta, n := varint(d.data[pos:end])
		if n == 0 {
			return Track{}, d.fail(pos, "a time of more than four bytes")
		}
		if pos += n; pos >= end {
			return Track{}, d.fail(pos, "the track ends inside an event")
		}
		now += int64(delta)
		e := Event{Time: now, Delta: delta}
		status := d.data[pos]
		if status >= 0x80 {
			pos++
		} else if status, e.Running = running, true; status == 0 {
			return Track{}, d.fail(pos, "an event without status")
		}
		var err error
		if status < 0xf0 {
			running = status
			pos, err = d.channelEvent(&e, status, pos, end)
		} else {
			pos, err = d.systemEvent(&e, status, pos, end)
		}
		if err != nil {
			return Track{}, err
		}
		track.Events = append(track.Events, e)
		if e.Is(EndOfTrack) {
			break
		}
	}
	if pos < end {
		track.Tail = d.data[pos:end]
	}
	return track, nil
}

// channelEvent reads the data bytes of a channel event and returns the offset after it.
func (d *decoder) channelEvent(e *Event, status byte, pos, end int) (int, error) {
	e.Kind, e.Channel = Kind(status&0xf0), status&0x0f
	n := e.Kind.dataLen()
	if end-pos < n {
		return 0, d.fail(end, "the track ends inside a %s", e.Kind)
	}
	e.Data1 = d.data[pos]
	if n == 2 {
		e.Data2 = d.data[pos+1]
	}
	if (e.Data1|e.Data2)&0x80 != 0 {
		return 0, d.fail(pos, "a %s with a data byte over 127", e.Kind)
	}
	return pos + n, nil
}

// systemEvent reads a meta or exclusive event and returns the offset after it.
// It does not end running status: the standard says it does, but some files rely on
// this.
func (d *decoder) systemEvent(e *Event, status byte, pos, end int) (int, error) {
	e.Kind = Kind(status)
	if e.Kind != Meta && e.Kind != SysEx && e.Kind != Escape {
		return 0, d.fail(pos-1, "status %#02x, which no file may hold", status)
	}
	if e.Kind == Meta {
		if pos >= end {
			return 0, d.fail(pos, "the track ends inside a meta event")
		}
		e.Meta = MetaType(d.data[pos])
		pos++
	}
	size, n := varint(d.data[pos:end])
	if n == 0 || int(size) > end-pos-n {
		return 0, d.fail(pos, "a %s event longer than its track", e.Kind)
	}
	pos += n
	if size > 0 {
		e.Bytes = d.data[pos : pos+int(size) : pos+int(size)]
	}
	return pos + int(size), nil
}

// varint reads a variable-length quantity of at most four bytes and returns
// how many it took; none when it does not end in time.
func varint(b []byte) (value uint32, n int) {
	for i := 0; i < len(b) && i < 4; i++ {
		value = value<<7 | uint32(b[i]&0x7f)
		if b[i]&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}
