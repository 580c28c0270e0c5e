// Package abc is the abc module of scripts: it checks and transposes tunes in ABC
// notation and converts them to MIDI files.
package abc

import (
	_ "embed"

	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed abc.md
var page string

// Module is the global abc.
func Module() host.Module {
	return host.Module{Name: "abc", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "parse", Pure: host.BindPure(parse)},
		{Name: "validate", Pure: host.BindPure(validate)},
		{Name: "transpose", Pure: host.BindPure(transpose)},
		{Name: "to_midi", Pure: host.BindPure(toMIDI)},
		{Name: "to_midi_file", Kind: host.Idempotent, Effect: host.Bind(toMIDIFile), Path: 2, Action: host.Does("write", 2)},
	}}
}

// parse(text) returns a summary of the tune.
func parse(text string) any { return abc.Summarize(text) }

// validate(text) returns whether the tune is valid, and the errors.
func validate(text string) (bool, []abc.Diagnostic) {
	found := abc.Validate(text)
	return found.Valid(), found.Errors
}

// transpose(text, semitones or key) returns the new text, and what was done.
func transpose(args host.Args, text string) (string, map[string]any, error) {
	moved, err := move(text, args)
	return moved.ABC, map[string]any{
		"transposed_by": moved.Semitones, "original_key": moved.OriginalKey, "new_key": moved.NewKey,
	}, err
}

func move(text string, args host.Args) (abc.Transposition, error) {
	if key, ok := args.At(2).(string); ok {
		return abc.TransposeTo(text, key)
	}
	semitones, err := args.Int(2)
	if err != nil {
		return abc.Transposition{}, err
	}
	return abc.Transpose(text, int(semitones))
}

// toMIDIFile(text, path, options?) writes a MIDI file.
func toMIDIFile(w *host.Services, text, path string, how options) (string, error) {
	data, err := toMIDI(text, how)
	if err != nil {
		return "", err
	}
	return path, w.Files.Write(path, data, false)
}

// options are the options of to_midi and to_midi_file.
type options struct {
	Velocity     int     `json:"velocity"`
	Channel      int     `json:"channel"`
	TicksPerBeat int     `json:"ticks_per_beat"`
	Tempo        float64 `json:"tempo"`
	Transpose    int     `json:"transpose"`
}

// toMIDI(text, options?) returns the content of a MIDI file.
func toMIDI(text string, how options) ([]byte, error) {
	tune, found := abc.Parse(text)
	if err := found.Err(); err != nil {
		return nil, err
	}
	file, err := abc.ToMIDI(tune, abc.Options(how))
	if err != nil {
		return nil, err
	}
	return file.Encode()
}
