// Package abc is the abc module of scripts: it checks and transposes tunes in ABC
// notation and converts them to MIDI files.
package abc

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed abc.md
var page string

// Module is the global abc.
func Module() host.Module {
	return host.Module{Name: "abc", Page: page, Funcs: []host.Func{
		{Name: "parse", Pure: parse},
		{Name: "validate", Pure: validate},
		{Name: "transpose", Pure: transpose},
		{Name: "to_midi", Pure: toMIDI},
		{Name: "to_midi_file", Kind: host.Idempotent, Effect: toMIDIFile, Path: 2},
	}}
}

// parse(text) returns a summary of the tune.
func parse(args host.Args) ([]host.Value, error) {
	text, err := args.String(1)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(abc.Summarize(text))
	return []host.Value{table}, err
}

// validate(text) returns whether the tune is valid, and the errors.
func validate(args host.Args) ([]host.Value, error) {
	text, err := args.String(1)
	if err != nil {
		return nil, err
	}
	found := abc.Validate(text)
	table, err := host.Table(append([]abc.Diagnostic{}, found.Errors...))
	return []host.Value{found.Valid(), table}, err
}

// transpose(text, semitones or key) returns the new text, and what was done.
func transpose(args host.Args) ([]host.Value, error) {
	text, err := args.String(1)
	if err != nil {
		return nil, err
	}
	moved, err := move(text, args)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(map[string]any{
		"transposed_by": moved.Semitones, "original_key": moved.OriginalKey, "new_key": moved.NewKey,
	})
	return []host.Value{moved.ABC, table}, err
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

// toMIDI(text, options?) returns the content of a MIDI file.
func toMIDI(args host.Args) ([]host.Value, error) {
	data, err := played(args, 2)
	return []host.Value{string(data)}, err
}

// toMIDIFile(text, path, options?) writes a MIDI file.
func toMIDIFile(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(2)
	if err != nil {
		return nil, err
	}
	data, err := played(args, 3)
	if err != nil {
		return nil, err
	}
	return []host.Value{path}, w.Files.Write(path, data, false)
}

// played converts the tune of argument 1 to a MIDI file, with the options of another
// argument.
func played(args host.Args, options int) ([]byte, error) {
	text, err := args.String(1)
	if err != nil {
		return nil, err
	}
	var how struct {
		Velocity     int     `json:"velocity"`
		Channel      int     `json:"channel"`
		TicksPerBeat int     `json:"ticks_per_beat"`
		Tempo        float64 `json:"tempo"`
		Transpose    int     `json:"transpose"`
	}
	if err := args.Decode(options, &how); err != nil {
		return nil, err
	}
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
