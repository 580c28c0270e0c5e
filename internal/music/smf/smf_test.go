package smf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// fileOf is a canonical file of tracks given as raw track bodies.
func fileOf(format, division uint16, tracks ...string) []byte {
	out := []byte("MThd\x00\x00\x00\x06")
	out = binary.BigEndian.AppendUint16(out, format)
	out = binary.BigEndian.AppendUint16(out, uint16(len(tracks)))
	out = binary.BigEndian.AppendUint16(out, division)
	for _, body := range tracks {
		out = append(out, chunkOf("MTrk", body)...)
	}
	return out
}

func chunkOf(kind, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
}

const endOfTrack = "\x00\xff\x2f\x00"

// canonical are files whose bytes must survive reading and writing.
func canonical() map[string][]byte {
	files := map[string][]byte{
		"format 0":       fileOf(0, 480, "\x00\x90\x3c\x40\x83\x60\x80\x3c\x00"+endOfTrack),
		"format 1":       fileOf(1, 96, "\x00\xff\x51\x03\x07\xa1\x20"+endOfTrack, "\x00\x91\x3c\x40\x60\x81\x3c\x40"+endOfTrack),
		"format 2":       fileOf(2, 96, "\x00\xc0\x05"+endOfTrack, "\x00\xd0\x05"+endOfTrack),
		"running status": fileOf(0, 480, "\x00\x90\x3c\x40\x60\x3c\x00\x00\x3e\x40\x60\x90\x3e\x00"+endOfTrack),
		"sysex":          fileOf(0, 480, "\x00\xf0\x05\x7e\x7f\x09\x01\xf7\x10\xf0\x03\x43\x12\x00\x10\xf7\x02\x01\xf7\x00\xf7\x01\xf8"+endOfTrack),
		"every channel kind": fileOf(0, 480,
			"\x00\x8f\x01\x02\x00\x9e\x03\x04\x00\xad\x05\x06\x00\xbc\x07\x08\x00\xcb\x09\x00\xda\x0a\x00\xe9\x0b\x0c"+endOfTrack),
		"smpte 25":       fileOf(1, 0xe728, endOfTrack),
		"smpte 29":       fileOf(1, 0xe350, endOfTrack),
		"large times":    fileOf(0, 480, "\xff\xff\xff\x7f\x90\x3c\x40\x81\x80\x80\x00\x3c\x00\x81\x80\x00\xff\x2f\x00"),
		"no tracks":      fileOf(1, 480),
		"tail":           fileOf(0, 480, endOfTrack+"left over"),
		"trailing bytes": append(fileOf(0, 480, endOfTrack), "zzz"...),
		"trailing noise": append(fileOf(0, 480, endOfTrack), "zzzz\xff\xff\xff\xff and more"...),
		"long header":    append([]byte("MThd\x00\x00\x00\x08\x00\x00\x00\x01\x01\xe0ab"), chunkOf("MTrk", endOfTrack)...),
	}
	between := append([]byte("MThd\x00\x00\x00\x06\x00\x01\x00\x02\x00\x60"), chunkOf("XFIH", "one")...)
	between = append(between, chunkOf("MTrk", endOfTrack)...)
	between = append(between, chunkOf("\x00\x01\x02\x03", "")...)
	between = append(between, chunkOf("MTrk", endOfTrack)...)
	files["unknown chunks"] = append(between, chunkOf("XFKM", "three")...)
	var metas strings.Builder
	for kind := range 128 {
		if kind != int(EndOfTrack) {
			fmt.Fprintf(&metas, "\x01\xff%c\x04\x01\x02\x03\x04", kind)
		}
	}
	files["every meta type"] = fileOf(0, 480, metas.String()+endOfTrack)
	return files
}

func TestCanonicalFilesSurviveByteForByte(t *testing.T) {
	t.Parallel()
	for name, data := range canonical() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, data) {
				t.Errorf("got  %q\nwant %q", got, data)
			}
		})
	}
}

func TestDecodeEvents(t *testing.T) {
	t.Parallel()
	file, err := Decode(fileOf(0, 480, "\x00\xff\x03\x04lead\x00\xff\x51\x03\x06\x1a\x80\x00\xff\x58\x04\x06\x03\x24\x08\x00\xff\x59\x02\xfe\x01"+
		"\x10\x93\x3c\x40\x60\x3c\x00\x00\xe3\x00\x50"+endOfTrack))
	if err != nil {
		t.Fatal(err)
	}
	events := file.Tracks[0].Events
	if len(events) != 8 {
		t.Fatalf("got %d events, want 8", len(events))
	}
	if string(events[0].Bytes) != "lead" || !events[0].Is(TrackName) {
		t.Errorf("track name: got %v", events[0])
	}
	if micros, ok := events[1].Tempo(); !ok || micros != 400000 {
		t.Errorf("tempo: got %d, %v", micros, ok)
	}
	if m, ok := events[2].Meter(); !ok || m != (Meter{6, 8, 36, 8}) {
		t.Errorf("meter: got %v, %v", m, ok)
	}
	if sharps, minor, ok := events[3].Key(); !ok || sharps != -2 || !minor {
		t.Errorf("key: got %d, %v, %v", sharps, minor, ok)
	}
	if want := (Event{Time: 16, Delta: 16, Kind: NoteOn, Channel: 3, Data1: 60, Data2: 64}); !reflect.DeepEqual(events[4], want) {
		t.Errorf("note: got %+v, want %+v", events[4], want)
	}
	if e := events[5]; !e.Stops() || !e.Running || e.Time != 112 || e.Delta != 96 {
		t.Errorf("end of note: got %+v", e)
	}
	if got := events[6].Bend(); got != 0x50<<7-8192 {
		t.Errorf("bend: got %d", got)
	}
}

func TestRunningStatusAcrossMetaIsRepaired(t *testing.T) {
	t.Parallel()
	file, err := Decode(fileOf(0, 480, "\x00\x90\x3c\x40\x00\xff\x01\x01a\x60\x3c\x00"+endOfTrack))
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := fileOf(0, 480, "\x00\x90\x3c\x40\x00\xff\x01\x01a\x60\x90\x3c\x00"+endOfTrack); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		data       []byte
	}{
		{"nothing", "at byte 0: no MThd header", nil},
		{"other file", "at byte 0: no MThd header", []byte("#!/bin/sh\nexit 0\n")},
		{"riff", "at byte 0: a RIFF file", []byte("RIFF\x00\x00\x00\x00RMIDdata")},
		{"cut header", "at byte 10: the file ends inside its header", []byte("MThd\x00\x00\x00\x06\x00\x01")},
		{"short header", "at byte 4: a header of 5 bytes", []byte("MThd\x00\x00\x00\x05\x00\x01\x00\x01\x00\x60")},
		{"huge header", "at byte 4: a header of 4294967295 bytes", []byte("MThd\xff\xff\xff\xff\x00\x01\x00\x01\x00\x60")},
		{"format 3", "at byte 8: format 3", fileOf(3, 96, endOfTrack)},
		{"no ticks", "at byte 12: a time division without ticks", fileOf(0, 0, endOfTrack)},
		{"no smpte ticks", "at byte 12: a time division without ticks", fileOf(0, 0xe800, endOfTrack)},
		{"missing track", "at byte 14: the file ends after 0 of 1 tracks", fileOf(0, 96, endOfTrack)[:14]},
		{"cut chunk header", "at byte 14: the file ends inside a chunk header", fileOf(0, 96, endOfTrack)[:20]},
		{"cut track", `at byte 14: a "MTrk" chunk of 4 bytes, but only 2 are left`, fileOf(0, 96, endOfTrack)[:24]},
		{"endless time", "at byte 22: a time of more than four bytes", fileOf(0, 96, "\x81\x82\x83\x84\x05\x90\x40\x40")},
		{"no status", "at byte 23: an event without status", fileOf(0, 96, "\x00\x40\x40"+endOfTrack)},
		{"time only", "at byte 23: the track ends inside an event", fileOf(0, 96, "\x00")},
		{"cut note", "at byte 25: the track ends inside a note_on", fileOf(0, 96, "\x00\x90\x40")},
		{"data byte", "at byte 24: a note_on with a data byte over 127", fileOf(0, 96, "\x00\x90\x40\x90"+endOfTrack)},
		{"status f4", "at byte 23: status 0xf4", fileOf(0, 96, "\x00\xf4\x00"+endOfTrack)},
		{"cut meta", "at byte 24: the track ends inside a meta event", fileOf(0, 96, "\x00\xff")},
		{"long meta", "at byte 25: a meta event longer than its track", fileOf(0, 96, "\x00\xff\x01\xff\xff\xff\x7fabc")},
		{"long sysex", "at byte 24: a sysex event longer than its track", fileOf(0, 96, "\x00\xf0\x05abc")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(test.data)
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a fault", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want it to say %q", err, test.want)
			}
			if f.Code != fault.InvalidParams || f.Hint == "" || len(f.Details) == 0 {
				t.Errorf("code %q, hint %q, details %s", f.Code, f.Hint, f.Details)
			}
		})
	}
}

func TestDecodeRefusesHugeFiles(t *testing.T) {
	t.Parallel()
	if _, err := Decode(make([]byte, MaxSize+1)); fault.CodeOf(err) != fault.Limit {
		t.Errorf("got %v, want %s", err, fault.Limit)
	}
}

func TestEveryCutOfAFileIsRefusedOrRead(t *testing.T) {
	t.Parallel()
	for name, data := range canonical() {
		for n := range data {
			if _, err := Decode(data[:n]); err != nil && fault.HintOf(err) == "" {
				t.Errorf("%s cut to %d bytes: %v without a hint", name, n, err)
			}
		}
	}
}

func TestDecodeCopiesItsInput(t *testing.T) {
	t.Parallel()
	data := fileOf(0, 480, "\x00\xff\x01\x03abc"+endOfTrack)
	file, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	if got := string(file.Tracks[0].Events[0].Bytes); got != "abc" {
		t.Errorf("got %q, want abc", got)
	}
}

func TestEncodeSortsAndCloses(t *testing.T) {
	t.Parallel()
	events := []Event{Release(480, 0, 60), End(100), Note(0, 0, 60, 64), Note(480, 0, 62, 64)}
	data, err := (&File{Tracks: []Track{{Events: events}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := fileOf(0, 480, "\x00\x90\x3c\x40\x83\x60\x80\x3c\x00\x00\x90\x3e\x40"+endOfTrack)
	if !bytes.Equal(data, want) {
		t.Errorf("got  %q\nwant %q", data, want)
	}
	if events[0].Time != 480 {
		t.Error("the caller's events were sorted in place")
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	one := func(e Event) File { return File{Tracks: []Track{{Events: []Event{e}}}} }
	tests := []struct {
		name, want string
		file       File
	}{
		{"format", "format 3", File{Format: 3}},
		{"ticks", "40000 ticks per beat", File{Division: Division{TicksPerBeat: 40000}}},
		{"smpte", "25 frames per second of 0 ticks", File{Division: Division{FramesPerSecond: 25}}},
		{"chunk", `"MTrk" cannot be`, File{Extra: []Chunk{{Type: "MTrk"}}}},
		{"channel", "track 1: event 1: note_on: channel 16", one(Note(0, 16, 1, 1))},
		{"note", "note_on: value 128", one(Note(0, 0, 128, 1))},
		{"velocity", "note_on: value 200", one(Note(0, 0, 1, 200))},
		{"negative time", "time -1 is out of reach", one(Note(-1, 0, 1, 1))},
		{"far time", "time 268435456 is out of reach", one(Note(1<<28, 0, 1, 1))},
		{"kind", "unknown kind of event 0x00", one(Event{})},
		{"status with channel", "unknown kind of event 0x91", one(Event{Kind: 0x91})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := test.file.Encode()
			if fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

func TestNamesGoBothWays(t *testing.T) {
	t.Parallel()
	for kind := range kindNames {
		if got, ok := ParseKind(kind.String()); !ok || got != kind {
			t.Errorf("ParseKind(%q) = %v, %v", kind, got, ok)
		}
	}
	for kind := range metaNames {
		if got, ok := ParseMetaType(kind.String()); !ok || got != kind {
			t.Errorf("ParseMetaType(%q) = %v, %v", kind, got, ok)
		}
	}
	if _, ok := ParseKind("unknown"); ok || Kind(1).String() != "unknown" || MetaType(0x60).String() != "unknown" {
		t.Error("unknown names were parsed")
	}
}

// FuzzDecode checks that nothing panics, and that whatever is read is written
// and read again as the same events.
func FuzzDecode(f *testing.F) {
	for _, data := range canonical() {
		f.Add(data)
	}
	f.Add(fileOf(0, 480, "\x00\x90\x3c\x40\x00\xff\x01\x01a\x60\x3c\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := Decode(data)
		if err != nil {
			if fault.HintOf(err) == "" {
				t.Fatalf("no hint: %v", err)
			}
			return
		}
		first.Info()
		out, err := first.Encode()
		if err != nil {
			t.Fatalf("write what was read: %v", err)
		}
		second, err := Decode(out)
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		if got, want := music(second), music(first); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// music is the file's events without the ways of writing them down, each track closed.
func music(f *File) [][]Event {
	var tracks [][]Event
	for _, t := range f.Tracks {
		var events []Event
		for _, e := range sorted(t.Events) {
			e.Running = false
			events = append(events, e)
		}
		Deltas(events)
		tracks = append(tracks, events)
	}
	return tracks
}

// large is a format 1 file of about a megabyte: 8 tracks of notes and controls.
func large() *File {
	f := &File{Format: 1}
	for channel := range uint8(8) {
		var events []Event
		for i := range int64(15000) {
			note := uint8(36 + i%60)
			events = append(events, Note(i*120, channel, note, 80), Release(i*120+110, channel, note))
			if i%8 == 0 {
				events = append(events, Control(i*120+115, channel, 7, uint8(i%128)))
			}
		}
		f.Tracks = append(f.Tracks, Track{Events: events})
	}
	return f
}

func BenchmarkDecode(b *testing.B) {
	data, err := large().Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	f := large()
	data, err := f.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
