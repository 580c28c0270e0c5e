package hootenanny

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/tools/toolset"
)

func (h *Backend) abcTools() []toolset.Tool {
	return []toolset.Tool{
		define("abc_parse", reads(), h.abcParse),
		define("abc_validate", reads(), h.abcValidate),
		define("abc_transpose", reads(), h.abcTranspose),
		define("abc_to_midi", puts(), h.abcToMIDI),
	}
}

type abcIn struct {
	ABC string `json:"abc" jsonschema:"a tune in ABC notation" min:"1" max:"1048576"`
}

// TuneProblem is an error or warning in a tune.
type TuneProblem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func problems(list []abc.Diagnostic) []TuneProblem {
	found := make([]TuneProblem, len(list))
	for i, d := range list {
		found[i] = TuneProblem{d.Line, d.Column, d.Message}
	}
	return found
}

// ParsedTune is the result of abc_parse.
type ParsedTune struct {
	Success   bool           `json:"success"`
	Title     string         `json:"title,omitempty"`
	Composer  string         `json:"composer,omitempty"`
	Key       string         `json:"key,omitempty"`
	Meter     string         `json:"meter,omitempty"`
	Tempo     float64        `json:"tempo,omitempty"`
	Voices    int            `json:"voices"`
	NoteCount int            `json:"note_count"`
	BarCount  int            `json:"bar_count"`
	AST       toolset.Object `json:"ast" jsonschema:"the tune as a tree: header, voices and body"`
	Errors    []TuneProblem  `json:"errors"`
	Warnings  []TuneProblem  `json:"warnings"`
}

// Text is one line.
func (p ParsedTune) Text() string {
	if !p.Success {
		return fmt.Sprintf("The tune has %d errors:\n%s", len(p.Errors), listed(p.Errors))
	}
	return fmt.Sprintf("%q in %s: %d notes in %d bars, %d voices", p.Title, p.Key, p.NoteCount, p.BarCount, p.Voices)
}

func listed(found []TuneProblem) string {
	var lines []string
	for _, p := range found {
		lines = append(lines, fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message))
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) abcParse(_ context.Context, _ tool.Call, in abcIn) (ParsedTune, error) {
	s := abc.Summarize(in.ABC)
	p := ParsedTune{
		Success: s.Valid, Title: s.Title, Composer: s.Composer, Key: s.Key, Meter: s.Meter, Tempo: s.Tempo, Voices: s.Voices,
		NoteCount: s.NoteCount, BarCount: s.BarCount, Errors: problems(s.Errors), Warnings: problems(s.Warnings),
	}
	tune, _ := abc.Parse(in.ABC)
	if tune == nil {
		return p, nil
	}
	raw, err := json.Marshal(tune)
	p.AST = raw
	return p, err
}

// TuneValidation is the result of abc_validate.
type TuneValidation struct {
	Valid    bool          `json:"valid"`
	Errors   []TuneProblem `json:"errors"`
	Warnings []TuneProblem `json:"warnings"`
}

// Text lists the errors.
func (v TuneValidation) Text() string {
	if v.Valid {
		return fmt.Sprintf("The tune is valid (%d warnings)", len(v.Warnings))
	}
	return fmt.Sprintf("The tune has %d errors:\n%s", len(v.Errors), listed(v.Errors))
}

func (h *Backend) abcValidate(_ context.Context, _ tool.Call, in abcIn) (TuneValidation, error) {
	d := abc.Validate(in.ABC)
	return TuneValidation{Valid: d.Valid(), Errors: problems(d.Errors), Warnings: problems(d.Warnings)}, nil
}

type abcTransposeIn struct {
	abcIn
	Semitones *int   `json:"semitones,omitempty" jsonschema:"how far, up or down" min:"-60" max:"60"`
	Key       string `json:"target_key,omitempty" jsonschema:"or the target key, such as D or F#m; the shorter way is taken" max:"16"`
}

// TransposedTune is a tune in another key.
type TransposedTune struct {
	ABC         string `json:"abc"`
	By          int    `json:"transposed_by" jsonschema:"semitones"`
	OriginalKey string `json:"original_key"`
	NewKey      string `json:"new_key"`
}

// Text is the tune.
func (t TransposedTune) Text() string { return t.ABC }

func (h *Backend) abcTranspose(_ context.Context, _ tool.Call, in abcTransposeIn) (TransposedTune, error) {
	var moved abc.Transposition
	var err error
	switch {
	case in.Semitones != nil && in.Key != "", in.Semitones == nil && in.Key == "":
		return TransposedTune{}, invalid("transpose: give semitones or target_key")
	case in.Semitones != nil:
		moved, err = abc.Transpose(in.ABC, *in.Semitones)
	default:
		moved, err = abc.TransposeTo(in.ABC, in.Key)
	}
	return TransposedTune{ABC: moved.ABC, By: moved.Semitones, OriginalKey: moved.OriginalKey, NewKey: moved.NewKey}, err
}

type abcToMIDIIn struct {
	abcIn
	Tempo     float64 `json:"tempo_override,omitempty" jsonschema:"quarter notes per minute; default: the tempo of the tune" min:"1" max:"999"`
	Transpose int     `json:"transpose,omitempty" jsonschema:"semitones" min:"-60" max:"60"`
	Velocity  int     `json:"velocity,omitempty" jsonschema:"how hard notes on weak beats are struck; default 80, and 95 to 105 on strong beats" min:"1" max:"127"`
	Channel   int     `json:"channel,omitempty" jsonschema:"MIDI channel for all voices, 9 is drums; default: one channel per voice" min:"0" max:"15"`
	Lineage
}

// TuneMIDI is the MIDI file of a tune.
type TuneMIDI struct {
	ArtifactView
	Title     string  `json:"title,omitempty"`
	NoteCount int     `json:"note_count"`
	Seconds   float64 `json:"duration_seconds"`

	Warnings []TuneProblem `json:"warnings" jsonschema:"what in the tune is not played, or not as it may be meant"`
}

// Text is one line.
func (p TuneMIDI) Text() string {
	text := fmt.Sprintf("%q as %s: %d notes, %.1f seconds", p.Title, p.ArtifactID, p.NoteCount, p.Seconds)
	if len(p.Warnings) > 0 {
		text += fmt.Sprintf("\n%d warnings:\n%s", len(p.Warnings), listed(p.Warnings))
	}
	return text
}

func (h *Backend) abcToMIDI(ctx context.Context, call tool.Call, in abcToMIDIIn) (TuneMIDI, error) {
	tune, found := abc.Parse(in.ABC)
	if err := found.Err(); err != nil {
		return TuneMIDI{}, err
	}
	file, err := abc.ToMIDI(tune, abc.Options{Velocity: in.Velocity, Channel: in.Channel, Tempo: in.Tempo, Transpose: in.Transpose})
	if err != nil {
		return TuneMIDI{}, err
	}
	data, err := file.Encode()
	if err != nil {
		return TuneMIDI{}, err
	}
	title := ""
	if len(tune.Titles) > 0 {
		title = tune.Titles[0]
	}
	a, err := h.create(ctx, bytes.NewReader(data), newArtifact{Lineage: in.Lineage, mime: "audio/midi", name: title, by: call.Ref.Name})
	info := file.Info()
	return TuneMIDI{ArtifactView: h.view(a), Title: title, NoteCount: info.NoteCount, Seconds: info.DurationSeconds, Warnings: problems(found.Warnings)}, err
}
