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
	return host.Module{Name: "soundfont", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "inspect", Kind: host.Read, Effect: describing(func(f *soundfont.Font) any {
			return map[string]any{"info": f.Info, "presets": presets(f), "has_drum_presets": f.HasDrums()}
		})},
		{Name: "info", Kind: host.Read, Effect: describing(func(f *soundfont.Font) any { return f.Info })},
		{Name: "presets", Kind: host.Read, Effect: describing(func(f *soundfont.Font) any { return presets(f) })},
		{Name: "preset", Kind: host.Read, Effect: host.Bind(preset)},
		{Name: "drums", Kind: host.Read, Effect: describing(func(f *soundfont.Font) any { return f.Kits() })},
	}}
}

func presets(f *soundfont.Font) []soundfont.Preset { return append([]soundfont.Preset{}, f.Presets...) }

// preset(font, bank, program) returns one preset with its regions.
func preset(ctx context.Context, w *host.Services, name string, bank, program int64) (map[string]any, error) {
	f, err := open(ctx, w, name)
	if err != nil {
		return nil, err
	}
	p, err := f.Preset(int(bank), int(program))
	if err != nil {
		return nil, err
	}
	return map[string]any{"bank": p.Bank, "program": p.Program, "name": p.Name, "regions": f.Regions(p)}, nil
}

// describing makes a function that returns a part of the font that its argument names.
func describing(say func(f *soundfont.Font) any) func(context.Context, *host.Services, host.Args) ([]host.Value, error) {
	return host.Bind(func(ctx context.Context, w *host.Services, name string) (any, error) {
		font, err := open(ctx, w, name)
		if err != nil {
			return nil, err
		}
		return say(font), nil
	})
}

// open reads a font, named by a hash or the path of a file that the script may read.
func open(ctx context.Context, w *host.Services, name string) (*soundfont.Font, error) {
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
