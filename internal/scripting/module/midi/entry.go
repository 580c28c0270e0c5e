package midi

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/smf"
)

// entry is one event as scripts see it, with only the fields of its type.
type entry struct {
	Type  string `json:"type"`
	Time  *whole `json:"time,omitempty"`
	Delta *whole `json:"delta,omitempty"`
	Track int    `json:"track,omitempty"`

	Channel    *whole `json:"channel,omitempty"`
	Note       *whole `json:"note,omitempty"`
	Velocity   *whole `json:"velocity,omitempty"`
	Pressure   *whole `json:"pressure,omitempty"`
	Controller *whole `json:"controller,omitempty"`
	Program    *whole `json:"program,omitempty"`
	Value      *whole `json:"value,omitempty"`

	MetaType      string  `json:"meta_type,omitempty"`
	MetaNumber    *whole  `json:"meta_number,omitempty"` // of an unknown one
	Tempo         *whole  `json:"tempo,omitempty"`       // microseconds per beat
	Numerator     *whole  `json:"numerator,omitempty"`
	Denominator   *whole  `json:"denominator,omitempty"`
	Clocks        *whole  `json:"clocks,omitempty"`
	ThirtySeconds *whole  `json:"thirty_seconds,omitempty"`
	SharpsFlats   *whole  `json:"sharps_flats,omitempty"`
	Minor         *bool   `json:"minor,omitempty"`
	Text          *string `json:"text,omitempty"`
	Encoding      string  `json:"encoding,omitempty"` // "latin1" when the file's text is not UTF-8
	Data          *octets `json:"data,omitempty"`     // the content, if no other field has it
}

func newEntry(e smf.Event, track int) entry {
	t := entry{Type: e.Kind.String(), Time: number(e.Time), Delta: number(int64(e.Delta)), Track: track}
	switch e.Kind {
	case smf.Meta:
		t.describeMeta(e)
	case smf.SysEx, smf.Escape:
		t.Data = (*octets)(&e.Bytes)
	default:
		t.describeChannel(e)
	}
	return t
}

func (t *entry) describeChannel(e smf.Event) {
	first, second := number(int64(e.Data1)), number(int64(e.Data2))
	t.Channel = number(int64(e.Channel))
	switch e.Kind {
	case smf.NoteOn, smf.NoteOff:
		t.Note, t.Velocity = first, second
	case smf.Aftertouch:
		t.Note, t.Pressure = first, second
	case smf.ControlChange:
		t.Controller, t.Value = first, second
	case smf.ProgramChange:
		t.Program = first
	case smf.ChannelAftertouch:
		t.Pressure = first
	case smf.PitchBend:
		t.Value = number(int64(e.Bend()))
	}
}

// describeMeta converts a meta event to fields if they can hold all of it, otherwise to
// data, so that unusual events survive.
func (t *entry) describeMeta(e smf.Event) {
	t.MetaType = e.Meta.String()
	if t.MetaType == "unknown" {
		t.MetaNumber = number(int64(e.Meta))
	}
	described := *t
	described.tellMeta(e)
	if again, err := described.event(0); err == nil && bytes.Equal(again.Bytes, e.Bytes) {
		*t = described
		return
	}
	t.Data = (*octets)(&e.Bytes)
}

func (t *entry) tellMeta(e smf.Event) {
	if micros, ok := e.Tempo(); ok {
		t.Tempo = number(int64(micros))
	}
	if m, ok := e.Meter(); ok {
		t.Numerator, t.Denominator = number(int64(m.Numerator)), number(int64(m.Denominator))
		if m.Clocks != usualClocks || m.ThirtySeconds != usualThirtySeconds {
			t.Clocks, t.ThirtySeconds = number(int64(m.Clocks)), number(int64(m.ThirtySeconds))
		}
	}
	if sharps, minor, ok := e.Key(); ok {
		t.SharpsFlats, t.Minor = number(int64(sharps)), &minor
	}
	if t.MetaType != "unknown" && e.Meta.Textual() {
		text := string(e.Bytes)
		if !utf8.ValidString(text) {
			text, t.Encoding = fromLatin1(e.Bytes), latin1
		}
		t.Text = &text
	}
}

const (
	usualClocks        = 24
	usualThirtySeconds = 8
	latin1             = "latin1"
)

// event converts the entry, at its time or, without one, its delta after now.
func (t *entry) event(now int64) (smf.Event, error) {
	kind, ok := smf.ParseKind(t.Type)
	if !ok {
		return smf.Event{}, fault.New(fault.InvalidParams, "%q is not a type of event", t.Type).
			WithHint("types are note_on, note_off, control_change, program_change, pitch_bend, aftertouch, channel_aftertouch, meta and sysex")
	}
	e := smf.Event{Kind: kind, Time: now + t.Delta.or(0)}
	if t.Time != nil {
		e.Time = int64(*t.Time)
	}
	var err error
	switch {
	case kind == smf.Meta:
		err = t.fillMeta(&e)
	case kind.OnChannel():
		err = t.fillChannel(&e)
	case t.Data == nil:
		err = missing(t.Type, "data")
	default:
		e.Bytes = *t.Data
	}
	return e, err
}

func (t *entry) fillChannel(e *smf.Event) error {
	fields := form{of: t.Type}
	e.Channel = fields.take("channel", t.Channel, 15, 0)
	switch e.Kind {
	case smf.NoteOn:
		e.Data1, e.Data2 = fields.need("note", t.Note), fields.take("velocity", t.Velocity, 127, 64)
	case smf.NoteOff:
		e.Data1, e.Data2 = fields.need("note", t.Note), fields.take("velocity", t.Velocity, 127, 0)
	case smf.Aftertouch:
		e.Data1, e.Data2 = fields.need("note", t.Note), fields.need("pressure", t.Pressure)
	case smf.ControlChange:
		e.Data1, e.Data2 = fields.need("controller", t.Controller), fields.need("value", t.Value)
	case smf.ProgramChange:
		e.Data1 = fields.need("program", t.Program)
	case smf.ChannelAftertouch:
		e.Data1 = fields.need("pressure", t.Pressure)
	case smf.PitchBend:
		bend := t.Value.or(0)
		if bend < -8192 || bend > 8191 {
			return fault.New(fault.InvalidParams, "pitch_bend: value %d is not -8192 to 8191", bend)
		}
		bent := smf.Bend(e.Time, e.Channel, int(bend))
		e.Data1, e.Data2 = bent.Data1, bent.Data2
	}
	return fields.err
}

func (t *entry) fillMeta(e *smf.Event) error {
	kind, ok := smf.ParseMetaType(t.MetaType)
	switch {
	case ok:
		e.Meta = kind
	case t.MetaNumber != nil && *t.MetaNumber >= 0 && *t.MetaNumber <= 127:
		e.Meta = smf.MetaType(*t.MetaNumber) // checked
	default:
		return fault.New(fault.InvalidParams, "%q is not a meta_type", t.MetaType).
			WithHint("such as tempo, time_signature, key_signature, track_name, text, lyric, marker, end_of_track; others need a meta_number")
	}
	if t.Data != nil {
		e.Bytes = *t.Data
		return nil
	}
	return t.fillContent(e)
}

func (t *entry) fillContent(e *smf.Event) error {
	switch {
	case e.Meta == smf.Tempo:
		micros := t.Tempo.or(0)
		if micros < 1 || micros > smf.MaxTempo {
			return fault.New(fault.InvalidParams, "tempo %d is not 1 to %d microseconds per beat", micros, smf.MaxTempo).
				WithHint("120 beats per minute are 60000000 / 120 = 500000")
		}
		e.Bytes = smf.SetTempo(0, int(micros)).Bytes
	case e.Meta == smf.TimeSignature:
		return t.fillMeter(e)
	case e.Meta == smf.KeySignature:
		sharps := t.SharpsFlats.or(0)
		if sharps < -7 || sharps > 7 {
			return fault.New(fault.InvalidParams, "key_signature: sharps_flats %d is not -7 to 7", sharps)
		}
		e.Bytes = smf.SetKey(0, int8(sharps), t.Minor != nil && *t.Minor).Bytes
	case e.Meta == smf.EndOfTrack:
	case e.Meta.Textual() && t.Text != nil:
		e.Bytes = t.words()
	default:
		return missing(t.MetaType, "data")
	}
	return nil
}

func (t *entry) fillMeter(e *smf.Event) error {
	denominator := t.Denominator.or(4)
	if denominator < 1 || denominator > 1<<30 || denominator&(denominator-1) != 0 {
		return fault.New(fault.InvalidParams, "time_signature: denominator %d is not a power of two", denominator)
	}
	fields := form{of: t.MetaType}
	e.Bytes = smf.SetMeter(0, fields.take("numerator", t.Numerator, 255, 4), int(denominator)).Bytes
	e.Bytes[2] = fields.take("clocks", t.Clocks, 255, usualClocks)
	e.Bytes[3] = fields.take("thirty_seconds", t.ThirtySeconds, 255, usualThirtySeconds)
	return fields.err
}

// words returns the text in the encoding of the file, if it can be encoded.
func (t *entry) words() []byte {
	if t.Encoding == latin1 {
		if data, ok := toLatin1(*t.Text); ok {
			return data
		}
	}
	return []byte(*t.Text)
}

func fromLatin1(data []byte) string {
	runes := make([]rune, len(data))
	for i, b := range data {
		runes[i] = rune(b)
	}
	return string(runes)
}

func toLatin1(text string) ([]byte, bool) {
	data := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 255 {
			return nil, false
		}
		data = append(data, byte(r))
	}
	return data, true
}

// form reads the fields of one event and records the first error.
type form struct {
	of  string
	err error
}

// need reads a required field of 0 to 127.
func (f *form) need(name string, value *whole) uint8 {
	if value == nil && f.err == nil {
		f.err = missing(f.of, name)
	}
	return f.take(name, value, 127, 0)
}

// take reads a field of 0 to most, or returns otherwise.
func (f *form) take(name string, value *whole, most, otherwise int64) uint8 {
	v := value.or(otherwise)
	if (v < 0 || v > most) && f.err == nil {
		f.err = fault.New(fault.InvalidParams, "%s: %s %d is not 0 to %d", f.of, name, v, most)
	}
	return uint8(v) // checked, or not used
}

func missing(of, name string) error {
	return fault.New(fault.InvalidParams, "%s: %s is missing", of, name)
}

// whole is an integer; fractions that a script computed are rounded, because a file has
// none.
type whole int64

func number(v int64) *whole { return (*whole)(&v) }

func (w *whole) or(otherwise int64) int64 {
	if w == nil {
		return otherwise
	}
	return int64(*w)
}

// UnmarshalJSON reads any number.
func (w *whole) UnmarshalJSON(text []byte) error {
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*w = whole(v)
		return nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Abs(v) > 1<<53 {
		return fault.New(fault.InvalidParams, "%s is not a number that fits", text)
	}
	*w = whole(math.Round(v))
	return nil
}
