// Package fs is the fs module of scripts, and the confined io library on top of it:
// files in the run's temp folder and in the allowed folders.
package fs

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed fs.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// findLimit is the most files that fs.find returns.
const findLimit = 10_000

// Module is the globals fs and io.
func Module() host.Module {
	return host.Module{Name: "fs", Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "read", Kind: host.Read, Effect: read},
		{Name: "write", Kind: host.Idempotent, Effect: write, Path: 1},
		{Name: "append", Kind: host.Write, Effect: add, Path: 1},
		{Name: "list", Kind: host.Read, Effect: list},
		{Name: "find", Kind: host.Read, Effect: find},
		{Name: "exists", Kind: host.Read, Effect: exists},
		{Name: "remove", Kind: host.Write, Effect: remove, Path: 1},
		{Name: "size", Kind: host.Read, Effect: size},
	}}
}

func read(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if args.At(2) == nil {
		data, err := w.Files.Read(path)
		return []host.Value{string(data)}, err
	}
	offset, err := args.Int(2)
	if err != nil {
		return nil, err
	}
	count, err := args.OptInt(3, host.LargestPart)
	if err != nil {
		return nil, err
	}
	data, err := w.Files.ReadPart(path, offset, count)
	return []host.Value{string(data)}, err
}

func write(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if args.At(3) == nil {
		return save(w, args, false)
	}
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := args.String(2)
	if err != nil {
		return nil, err
	}
	offset, err := args.Int(3)
	if err != nil {
		return nil, err
	}
	return nil, w.Files.WritePart(path, []byte(data), offset)
}

func add(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	return save(w, args, true)
}

func save(w *host.Services, args host.Args, add bool) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := args.String(2)
	if err != nil {
		return nil, err
	}
	return nil, w.Files.Write(path, []byte(data), add)
}

func size(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	bytes, err := w.Files.Size(path)
	return []host.Value{bytes}, err
}

func list(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	entries, err := w.Files.List(path)
	if err != nil {
		return nil, err
	}
	table, err := host.Table(entries)
	return []host.Value{table}, err
}

func find(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	pattern, err := args.String(1)
	if err != nil {
		return nil, err
	}
	paths, err := w.Files.Find(pattern, findLimit)
	if err != nil {
		return nil, err
	}
	if paths == nil {
		paths = []string{}
	}
	table, err := host.Table(paths)
	return []host.Value{table}, err
}

func exists(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	there, err := w.Files.Exists(path)
	return []host.Value{there}, err
}

func remove(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	return nil, w.Files.Remove(path)
}
