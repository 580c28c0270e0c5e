// Package smf reads, writes and reshapes Standard MIDI Files: formats 0, 1 and
// 2, running status, system exclusive in both forms, every meta event, beat and
// SMPTE time, and chunks it does not know. A file that is decoded
// and encoded again has the same events; a canonical file has the same bytes.
package smf

import "github.com/luanette/luanette/internal/base/fault"

// MaxSize is the largest file Decode takes, in bytes. The events of a file need
// up to 24 times its size in memory (2 bytes on disk may become one Event).
const MaxSize = 16 << 20

// DefaultTicksPerBeat is the time resolution of a File that names none.
const DefaultTicksPerBeat = 480

// File is one Standard MIDI File. The zero value, given a track, is a valid
// format 0 file of 480 ticks per beat.
type File struct {
	Format   int      // 0: one track; 1: tracks that sound together; 2: independent tracks
	Division Division // what a tick is
	Tracks   []Track

	// The fields below allow a file to be written as it was read.

	Extra       []Chunk // chunks that are neither header nor track
	HeaderExtra []byte  // header bytes after the division
	Trailing    []byte  // bytes after the last whole chunk
}

// Division says what a tick is: a part of a beat, or a part of an SMPTE frame
// when FramesPerSecond is set. The zero value means 480 ticks per beat.
type Division struct {
	TicksPerBeat    uint16 // 1–32767; a beat is a quarter note
	FramesPerSecond uint8  // 24, 25, 29 (meaning 29.97) or 30; zero for beat time
	TicksPerFrame   uint8  // with FramesPerSecond only
}

// SMPTE reports whether ticks count frames of real time rather than beats.
func (d Division) SMPTE() bool { return d.FramesPerSecond != 0 }

// orDefault fills in what the zero value means.
func (d Division) orDefault() Division {
	if d == (Division{}) {
		d.TicksPerBeat = DefaultTicksPerBeat
	}
	return d
}

// secondsPerTick is the fixed length of an SMPTE tick.
func (d Division) secondsPerTick() float64 {
	rate := float64(d.FramesPerSecond)
	if d.FramesPerSecond == 29 {
		rate = 30 / 1.001
	}
	return 1 / (rate * float64(d.TicksPerFrame))
}

// word is the division as the header holds it.
func (d Division) word() (uint16, error) {
	d = d.orDefault()
	switch {
	case d.SMPTE() && (d.FramesPerSecond > 128 || d.TicksPerFrame == 0):
		return 0, fault.New(fault.InvalidParams, "%d frames per second of %d ticks is not a time division", d.FramesPerSecond, d.TicksPerFrame).
			WithHint("use 24, 25, 29 or 30 frames per second and 1 to 255 ticks per frame")
	case d.SMPTE():
		return uint16(-int8(d.FramesPerSecond-1)-1)<<8 | uint16(d.TicksPerFrame), nil
	case d.TicksPerBeat == 0 || d.TicksPerBeat > 0x7fff:
		return 0, fault.New(fault.InvalidParams, "%d ticks per beat is not a time division", d.TicksPerBeat).
			WithHint("use 1 to 32767 ticks per beat; 480 is usual")
	}
	return d.TicksPerBeat, nil
}

// divisionOf is the inverse of word. A division without ticks comes back as
// the zero value.
func divisionOf(word uint16) Division {
	if word&0x8000 == 0 {
		return Division{TicksPerBeat: word}
	}
	if word&0xff == 0 {
		return Division{}
	}
	return Division{FramesPerSecond: uint8(-int16(int8(word >> 8))), TicksPerFrame: uint8(word)}
}

// Track is a sequence of events in order of time.
type Track struct {
	Events []Event
	Tail   []byte // bytes of the track chunk after its end_of_track, written back by Encode
}

// End is the time of the track's last event in ticks.
func (t Track) End() int64 {
	var end int64
	for i := range t.Events {
		end = max(end, t.Events[i].Time)
	}
	return end
}

// Chunk is a part of the file that is neither header nor track.
type Chunk struct {
	Type   string // four bytes, such as "XFIH"
	Data   []byte
	Before int // index of the track it stands in front of; len(Tracks) or more: at the end
}
