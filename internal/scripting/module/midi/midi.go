// Package midi is the midi module of scripts: Standard MIDI Files as tables, and back
// without loss. Functions that change the script's tables in place are in the prelude.
package midi

import (
	"embed"
	"encoding/hex"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed midi.md prelude.lua prelude.js
var files embed.FS

// Module is the global midi.
func Module() host.Module {
	return host.Module{Name: "midi", Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "read", Kind: host.Read, Effect: host.Bind(read)},
		{Name: "write", Kind: host.Idempotent, Effect: host.Bind(write), Path: 1, Action: host.Does("write", 1)},
		{Name: "decode", Pure: host.BindPure(decode)},
		{Name: "encode", Pure: host.BindPure(encode)},
		{Name: "info", Pure: host.BindPure(info)},
	}}
}

// read(path) returns a file's score, whose events the prelude also lists merged.
func read(w *host.Services, path string) (score, error) {
	data, err := w.Files.Read(path)
	if err != nil {
		return score{}, err
	}
	return decode(string(data))
}

// decode(bytes) returns the score of a file's content.
func decode(data string) (score, error) {
	file, err := smf.Decode([]byte(data))
	if err != nil {
		return score{}, err
	}
	return newScore(file), nil
}

// write(path, score) writes a file.
func write(w *host.Services, path string, s score) (string, error) {
	data, err := encode(s)
	if err != nil {
		return "", err
	}
	return path, w.Files.Write(path, data, false)
}

// encode(score) returns the content of a file.
func encode(s score) ([]byte, error) {
	file, err := s.file()
	if err != nil {
		return nil, err
	}
	return file.Encode()
}

// info(score) returns a summary of a score.
func info(s score) (any, error) {
	file, err := s.file()
	if err != nil {
		return nil, err
	}
	return file.Info(), nil
}

// score is a file as scripts see it. Bytes without a meaning for scripts are hex text,
// in fields that are present only if a file has such bytes.
type score struct {
	Format          whole   `json:"format"`
	TicksPerBeat    whole   `json:"ticks_per_beat,omitempty"`
	FramesPerSecond whole   `json:"frames_per_second,omitempty"` // in place of ticks_per_beat
	TicksPerFrame   whole   `json:"ticks_per_frame,omitempty"`
	RunningStatus   bool    `json:"running_status,omitempty"` // repeated status bytes are left out
	Tracks          []part  `json:"tracks"`
	Chunks          []chunk `json:"chunks,omitempty"`
	HeaderExtra     octets  `json:"header_extra,omitempty"`
	Trailing        octets  `json:"trailing,omitempty"`
}

// part is one track.
type part struct {
	Events []entry `json:"events"`
	Tail   octets  `json:"tail,omitempty"` // bytes after its end
}

// chunk is a part of a file that is not a track.
type chunk struct {
	Type   string `json:"type"`
	Before whole  `json:"before"` // the track it precedes, from 1
	Data   octets `json:"data"`
}

func newScore(f *smf.File) score {
	s := score{
		Format: whole(f.Format), TicksPerBeat: whole(f.Division.TicksPerBeat),
		FramesPerSecond: whole(f.Division.FramesPerSecond), TicksPerFrame: whole(f.Division.TicksPerFrame),
		Tracks: make([]part, len(f.Tracks)), HeaderExtra: f.HeaderExtra, Trailing: f.Trailing,
	}
	for i, track := range f.Tracks {
		p := part{Events: make([]entry, len(track.Events)), Tail: track.Tail}
		for j, e := range track.Events {
			p.Events[j] = newEntry(e, i+1)
			s.RunningStatus = s.RunningStatus || e.Running
		}
		s.Tracks[i] = p
	}
	for _, c := range f.Extra {
		s.Chunks = append(s.Chunks, chunk{Type: c.Type, Before: whole(c.Before + 1), Data: c.Data})
	}
	return s
}

// file converts what a script wrote, or returns which event is invalid.
func (s score) file() (*smf.File, error) {
	f := &smf.File{Format: int(s.Format), HeaderExtra: s.HeaderExtra, Trailing: s.Trailing}
	if err := s.division(f); err != nil {
		return nil, err
	}
	for i, p := range s.Tracks {
		track := smf.Track{Events: make([]smf.Event, len(p.Events)), Tail: p.Tail}
		var now int64
		for j := range p.Events {
			e, err := p.Events[j].event(now)
			if err != nil {
				return nil, fault.Wrap(fault.InvalidParams, err, "track %d, event %d", i+1, j+1)
			}
			e.Running = s.RunningStatus && e.Kind.OnChannel()
			now = e.Time
			track.Events[j] = e
		}
		f.Tracks = append(f.Tracks, track)
	}
	for _, c := range s.Chunks {
		f.Extra = append(f.Extra, smf.Chunk{Type: c.Type, Before: int(c.Before) - 1, Data: c.Data})
	}
	return f, nil
}

func (s score) division(f *smf.File) error {
	if s.TicksPerBeat < 0 || s.TicksPerBeat > 0x7fff {
		return fault.New(fault.InvalidParams, "%d ticks per beat is not a valid time division", s.TicksPerBeat).
			WithHint("use 1 to 32767 ticks per beat; 480 is usual")
	}
	if s.FramesPerSecond < 0 || s.FramesPerSecond > 128 || s.TicksPerFrame < 0 || s.TicksPerFrame > 255 {
		return fault.New(fault.InvalidParams, "%d frames per second of %d ticks is not a valid time division", s.FramesPerSecond, s.TicksPerFrame).
			WithHint("use 24, 25, 29 or 30 frames per second and 1 to 255 ticks per frame")
	}
	f.Division = smf.Division{
		TicksPerBeat:    uint16(s.TicksPerBeat), // checked above
		FramesPerSecond: uint8(s.FramesPerSecond), TicksPerFrame: uint8(s.TicksPerFrame),
	}
	return nil
}

// octets are bytes encoded as hex text.
type octets []byte

// MarshalText writes lower-case hex.
func (o octets) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(o)), nil }

// UnmarshalText reads hex; white space is allowed between bytes.
func (o *octets) UnmarshalText(text []byte) error {
	data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		return fault.New(fault.InvalidParams, "data must be hex digits such as \"43 10 f7\"")
	}
	*o = data
	return nil
}
