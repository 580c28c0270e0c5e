// Package soundfont is the soundfont module of scripts: it reads SoundFont files.
package soundfont

import (
	"context"
	_ "embed"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/soundfont"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed soundfont.md
var page string

// Module is the global soundfont.
func Module() host.Module {
	return host.Module{Name: "soundfont", Page: page, Funcs: []host.Func{
		{Name: "inspect", Kind: host.Read, Effect: describing(func(f *soundfont.Font, _ host.Args) (any, error) {
			return map[string]any{"info": f.Info, "presets": presets(f), "has_drum_presets": f.HasDrums()}, nil
		})},
		{Name: "info", Kind: host.Read, Effect: describing(func(f *soundfont.Font, _ host.Args) (any, error) { return f.Info, nil })},
		{Name: "presets", Kind: host.Read, Effect: describing(func(f *soundfont.Font, _ host.Args) (any, error) { return presets(f), nil })},
		{Name: "preset", Kind: host.Read, Effect: describing(preset)},
		{Name: "drums", Kind: host.Read, Effect: describing(func(f *soundfont.Font, _ host.Args) (any, error) { return f.Kits(), nil })},
	}}
}

func presets(f *soundfont.Font) []soundfont.Preset { return append([]soundfont.Preset{}, f.Presets...) }

// preset(font, bank, program) returns one preset with its regions.
func preset(f *soundfont.Font, args host.Args) (any, error) {
	bank, err := args.Int(2)
	if err != nil {
		return nil, err
	}
	program, err := args.Int(3)
	if err != nil {
		return nil, err
	}
	p, err := f.Preset(int(bank), int(program))
	if err != nil {
		return nil, err
	}
	return map[string]any{"bank": p.Bank, "program": p.Program, "name": p.Name, "regions": f.Regions(p)}, nil
}

// describing makes a function that returns a part of the font in argument 1.
func describing(say func(f *soundfont.Font, args host.Args) (any, error)) func(context.Context, *host.Services, host.Args) ([]host.Value, error) {
	return func(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
		font, err := open(ctx, w, args)
		if err != nil {
			return nil, err
		}
		said, err := say(font, args)
		if err != nil {
			return nil, err
		}
		table, err := host.Table(said)
		return []host.Value{table}, err
	}
}

// open reads the font that argument 1 names: a hash, or the path of a file that the
// script may read.
func open(ctx context.Context, w *host.Services, args host.Args) (*soundfont.Font, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	file, err := w.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read SoundFont %s", name)
	}
	return soundfont.Read(file, size)
}
