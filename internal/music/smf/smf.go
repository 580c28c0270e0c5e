// Package smf reads, writes and reshapes Standard MIDI Files: formats 0, 1 and
// 2, running status, system exclusive in both forms, every meta event, beat and
// SMPTE time, and chunks it does not know. A file that is decoded
// and encoded again has the same events; a canonical file has the same bytes.
package smf

import (
	"math/bits"
	"sort"

	"github.com/luanette/luanette/internal/base/fault"
)

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

// Kind is what an event does. Its value is the status byte without channel.
type Kind uint8

// The kinds of events.
const (
	NoteOff           Kind = 0x80 // Data1 note, Data2 release velocity
	NoteOn            Kind = 0x90 // Data1 note, Data2 velocity; velocity 0 ends the note
	Aftertouch        Kind = 0xa0 // Data1 note, Data2 pressure
	ControlChange     Kind = 0xb0 // Data1 controller, Data2 value
	ProgramChange     Kind = 0xc0 // Data1 program
	ChannelAftertouch Kind = 0xd0 // Data1 pressure
	PitchBend         Kind = 0xe0 // Data1 low, Data2 high seven bits; see Bend
	SysEx             Kind = 0xf0 // Bytes: the message after F0, mostly with its closing F7
	Escape            Kind = 0xf7 // Bytes: sent as they are, or the next part of a SysEx
	Meta              Kind = 0xff // Meta the type, Bytes the content
)

// kindNames gives kinds their names in scripts and summaries.
var kindNames = map[Kind]string{
	NoteOff:           "note_off",
	NoteOn:            "note_on",
	Aftertouch:        "aftertouch",
	ControlChange:     "control_change",
	ProgramChange:     "program_change",
	ChannelAftertouch: "channel_aftertouch",
	PitchBend:         "pitch_bend",
	SysEx:             "sysex",
	Escape:            "escape",
	Meta:              "meta",
}

// ParseKind finds the kind of a name such as "note_on".
func ParseKind(name string) (Kind, bool) {
	for kind, n := range kindNames {
		if n == name {
			return kind, true
		}
	}
	return 0, false
}

// String is the kind's name, such as "note_on", or "unknown".
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "unknown"
}

// OnChannel reports whether events of this kind belong to a channel.
func (k Kind) OnChannel() bool { return k >= NoteOff && k < SysEx }

// dataLen is how many data bytes a channel event of this kind has.
func (k Kind) dataLen() int {
	if k == ProgramChange || k == ChannelAftertouch {
		return 1
	}
	return 2
}

// Event is one thing that happens in a track. Time is what counts: Encode and
// the editing functions go by it and set Delta anew; Times and Deltas
// convert between the two.
type Event struct {
	Time    int64    // ticks since the start of the track
	Delta   uint32   // ticks since the event before
	Kind    Kind     //
	Channel uint8    // 0–15, for the kinds OnChannel
	Data1   uint8    // 0–127, see the kinds
	Data2   uint8    // 0–127, see the kinds
	Meta    MetaType // for Meta
	Running bool     // the file left out the status byte; Encode does so too where that is allowed
	Bytes   []byte   // for SysEx, Escape and Meta; shared, not to be changed in place
}

// Note makes a note_on at time; velocity 0 would end the note instead.
func Note(time int64, channel, note, velocity uint8) Event {
	return Event{Time: time, Kind: NoteOn, Channel: channel, Data1: note, Data2: velocity}
}

// Release makes a note_off at time.
func Release(time int64, channel, note uint8) Event {
	return Event{Time: time, Kind: NoteOff, Channel: channel, Data1: note}
}

// Program makes a program_change at time.
func Program(time int64, channel, program uint8) Event {
	return Event{Time: time, Kind: ProgramChange, Channel: channel, Data1: program}
}

// Control makes a control_change at time.
func Control(time int64, channel, controller, value uint8) Event {
	return Event{Time: time, Kind: ControlChange, Channel: channel, Data1: controller, Data2: value}
}

// Bend makes a pitch_bend at time; value is cut to −8192…8191, 0 is the middle.
func Bend(time int64, channel uint8, value int) Event {
	v := min(max(value, -8192), 8191) + 8192
	return Event{Time: time, Kind: PitchBend, Channel: channel, Data1: uint8(v & 0x7f), Data2: uint8(v >> 7)}
}

// Bend is the value of a pitch_bend, −8192…8191.
func (e Event) Bend() int { return int(e.Data2)<<7 + int(e.Data1) - 8192 }

// Starts reports whether the event starts a note.
func (e Event) Starts() bool { return e.Kind == NoteOn && e.Data2 > 0 }

// Stops reports whether the event ends a note: a note_off, or a note_on of velocity 0.
func (e Event) Stops() bool { return e.Kind == NoteOff || e.Kind == NoteOn && e.Data2 == 0 }

// Is reports whether the event is a meta event of type t.
func (e Event) Is(t MetaType) bool { return e.Kind == Meta && e.Meta == t }

// Deltas sets every Delta from the Times, which must not go backwards.
func Deltas(events []Event) {
	var now int64
	for i := range events {
		events[i].Delta = uint32(events[i].Time - now)
		now = events[i].Time
	}
}

// MetaType is the type of a meta event. Types without a name here are read, stored
// and written like the others.
type MetaType uint8

// The meta events of the standard.
const (
	SequenceNumber    MetaType = 0x00
	Text              MetaType = 0x01
	Copyright         MetaType = 0x02
	TrackName         MetaType = 0x03
	InstrumentName    MetaType = 0x04
	Lyric             MetaType = 0x05
	Marker            MetaType = 0x06
	CuePoint          MetaType = 0x07
	ProgramName       MetaType = 0x08
	DeviceName        MetaType = 0x09
	ChannelPrefix     MetaType = 0x20
	Port              MetaType = 0x21
	EndOfTrack        MetaType = 0x2f
	Tempo             MetaType = 0x51
	SMPTEOffset       MetaType = 0x54
	TimeSignature     MetaType = 0x58
	KeySignature      MetaType = 0x59
	SequencerSpecific MetaType = 0x7f
)

// metaNames gives meta types their names in scripts and summaries.
var metaNames = map[MetaType]string{
	SequenceNumber:    "sequence_number",
	Text:              "text",
	Copyright:         "copyright",
	TrackName:         "track_name",
	InstrumentName:    "instrument_name",
	Lyric:             "lyric",
	Marker:            "marker",
	CuePoint:          "cue_point",
	ProgramName:       "program_name",
	DeviceName:        "device_name",
	ChannelPrefix:     "channel_prefix",
	Port:              "port",
	EndOfTrack:        "end_of_track",
	Tempo:             "tempo",
	SMPTEOffset:       "smpte_offset",
	TimeSignature:     "time_signature",
	KeySignature:      "key_signature",
	SequencerSpecific: "sequencer_specific",
}

// ParseMetaType finds the type of a name such as "tempo".
func ParseMetaType(name string) (MetaType, bool) {
	for t, n := range metaNames {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// String is the type's name, such as "tempo", or "unknown".
func (t MetaType) String() string {
	if name, ok := metaNames[t]; ok {
		return name
	}
	return "unknown"
}

// Textual reports whether the content is text for people: types 1 to 15.
func (t MetaType) Textual() bool { return t >= 0x01 && t <= 0x0f }

// TextEvent makes a meta event of text: a track_name, lyric, marker and so on.
func TextEvent(time int64, t MetaType, text string) Event {
	return Event{Time: time, Kind: Meta, Meta: t, Bytes: []byte(text)}
}

// End makes the end_of_track that closes every track.
func End(time int64) Event { return Event{Time: time, Kind: Meta, Meta: EndOfTrack} }

// MaxTempo is the slowest tempo a file can hold, in microseconds per beat.
const MaxTempo = 1<<24 - 1

// DefaultTempo is 120 beats per minute, in microseconds per beat: what holds
// before the first tempo event.
const DefaultTempo = 500_000

// SetTempo makes a tempo event; micros is cut to 1…MaxTempo.
func SetTempo(time int64, micros int) Event {
	m := min(max(micros, 1), MaxTempo)
	return Event{Time: time, Kind: Meta, Meta: Tempo, Bytes: []byte{byte(m >> 16), byte(m >> 8), byte(m)}}
}

// Tempo is the microseconds per beat of a tempo event; ok is false for other
// events and malformed ones.
func (e Event) Tempo() (micros int, ok bool) {
	if !e.Is(Tempo) || len(e.Bytes) < 3 {
		return 0, false
	}
	return int(e.Bytes[0])<<16 | int(e.Bytes[1])<<8 | int(e.Bytes[2]), true
}

// Meter is the content of a time_signature.
type Meter struct {
	Numerator     uint8
	Denominator   int   // a power of two
	Clocks        uint8 // MIDI clocks per metronome click
	ThirtySeconds uint8 // 32nd notes per beat; 8 but for odd files
}

// SetMeter makes a time_signature event with usual clocks: 24 per quarter note.
// The denominator is taken down to a power of two.
func SetMeter(time int64, numerator uint8, denominator int) Event {
	power := bits.Len(uint(max(denominator, 1))) - 1
	return Event{Time: time, Kind: Meta, Meta: TimeSignature, Bytes: []byte{numerator, byte(power), 24, 8}}
}

// Meter is what a time_signature event says; ok is false for other events and
// malformed ones.
func (e Event) Meter() (m Meter, ok bool) {
	if !e.Is(TimeSignature) || len(e.Bytes) < 4 || e.Bytes[1] > 30 {
		return Meter{}, false
	}
	return Meter{e.Bytes[0], 1 << e.Bytes[1], e.Bytes[2], e.Bytes[3]}, true
}

// SetKey makes a key_signature event: sharps are positive, flats negative.
func SetKey(time int64, sharpsFlats int8, minor bool) Event {
	data := []byte{byte(sharpsFlats), 0}
	if minor {
		data[1] = 1
	}
	return Event{Time: time, Kind: Meta, Meta: KeySignature, Bytes: data}
}

// Key is what a key_signature event says: sharps positive, flats negative; ok
// is false for other events and malformed ones.
func (e Event) Key() (sharpsFlats int8, minor, ok bool) {
	if !e.Is(KeySignature) || len(e.Bytes) < 2 {
		return 0, false, false
	}
	return int8(e.Bytes[0]), e.Bytes[1] == 1, true
}

// TempoMap converts ticks to seconds.
type TempoMap struct {
	steps []tempoStep
}

// tempoStep says that from tick, which is at seconds, a tick lasts perTick seconds.
type tempoStep struct {
	tick    int64
	seconds float64
	perTick float64
}

// TempoMapOf collects the tempo changes of tracks that sound together. Under an
// SMPTE division tempo events have no effect.
func TempoMapOf(division Division, tracks ...Track) *TempoMap {
	division = division.orDefault()
	if division.SMPTE() {
		return &TempoMap{steps: []tempoStep{{perTick: division.secondsPerTick()}}}
	}
	m := &TempoMap{}
	perBeat := float64(division.TicksPerBeat) * 1e6
	m.add(0, DefaultTempo/perBeat)
	for _, e := range tempoEvents(tracks) {
		micros, _ := e.Tempo()
		m.add(e.Time, float64(micros)/perBeat)
	}
	return m
}

// tempoEvents are the well-formed tempo changes of the tracks by time.
func tempoEvents(tracks []Track) []Event {
	var found []Event
	for _, t := range tracks {
		for i := range t.Events {
			if _, ok := t.Events[i].Tempo(); ok {
				found = append(found, t.Events[i])
			}
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].Time < found[j].Time })
	return found
}

// add appends a step; a step at the tick of the last one replaces it.
func (m *TempoMap) add(tick int64, perTick float64) {
	step := tempoStep{tick: tick, seconds: m.Seconds(tick), perTick: perTick}
	if last := len(m.steps) - 1; last >= 0 && m.steps[last].tick == tick {
		m.steps[last] = step
		return
	}
	m.steps = append(m.steps, step)
}

// Seconds is the time of a tick since the start.
func (m *TempoMap) Seconds(tick int64) float64 {
	s := m.step(tick)
	return s.seconds + float64(tick-s.tick)*s.perTick
}

// step is the last one that begins at tick or before; the first when none does.
func (m *TempoMap) step(tick int64) tempoStep {
	if len(m.steps) == 0 {
		return tempoStep{}
	}
	past := sort.Search(len(m.steps), func(i int) bool { return m.steps[i].tick > tick })
	return m.steps[max(past-1, 0)]
}
