package smf

import "math/bits"

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
