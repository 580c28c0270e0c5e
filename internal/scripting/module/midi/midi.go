// Package midi is the midi module of scripts: Standard MIDI Files as tables, and back
// without loss. Functions that change the script's tables in place are in the prelude.
package midi

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed midi.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the global midi.
func Module() host.Module {
	return host.Module{Name: "midi", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "read", Kind: host.Read, Effect: read},
		{Name: "write", Kind: host.Idempotent, Effect: write, Path: 1},
		{Name: "decode", Pure: decode},
		{Name: "encode", Pure: encode},
		{Name: "info", Pure: info},
	}}
}

// read(path) returns a file's score, whose events the prelude also lists merged.
func read(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := w.Files.Read(path)
	if err != nil {
		return nil, err
	}
	return scoreOf(data)
}

// decode(bytes) returns the score of a file's content.
func decode(args host.Args) ([]host.Value, error) {
	data, err := args.String(1)
	if err != nil {
		return nil, err
	}
	return scoreOf([]byte(data))
}

func scoreOf(data []byte) ([]host.Value, error) {
	file, err := smf.Decode(data)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(newScore(file))
	return []host.Value{table}, err
}

// write(path, score) writes a file.
func write(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	file, err := fileAt(args, 2)
	if err != nil {
		return nil, err
	}
	data, err := file.Encode()
	if err != nil {
		return nil, err
	}
	return []host.Value{path}, w.Files.Write(path, data, false)
}

// encode(score) returns the content of a file.
func encode(args host.Args) ([]host.Value, error) {
	file, err := fileAt(args, 1)
	if err != nil {
		return nil, err
	}
	data, err := file.Encode()
	return []host.Value{string(data)}, err
}

// info(score) returns a summary of a score.
func info(args host.Args) ([]host.Value, error) {
	file, err := fileAt(args, 1)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(file.Info())
	return []host.Value{table}, err
}

func fileAt(args host.Args, i int) (*smf.File, error) {
	var s score
	if err := args.Decode(i, &s); err != nil {
		return nil, err
	}
	return s.file()
}
