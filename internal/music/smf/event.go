package smf

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

// pitched reports whether Data1 is a note.
func (e Event) pitched() bool { return e.Kind == NoteOn || e.Kind == NoteOff || e.Kind == Aftertouch }

// Is reports whether the event is a meta event of type t.
func (e Event) Is(t MetaType) bool { return e.Kind == Meta && e.Meta == t }

// Times sets every Time from the Deltas.
func Times(events []Event) {
	var now int64
	for i := range events {
		now += int64(events[i].Delta)
		events[i].Time = now
	}
}

// Deltas sets every Delta from the Times, which must not go backwards.
func Deltas(events []Event) {
	var now int64
	for i := range events {
		events[i].Delta = uint32(events[i].Time - now)
		now = events[i].Time
	}
}
