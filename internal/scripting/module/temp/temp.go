// Package temp is the temp module of scripts: files in the run's own folder.
package temp

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed temp.md
var page string

// Module is the global temp.
func Module() host.Module {
	return host.Module{Name: "temp", Page: page, Funcs: []host.Func{
		{Name: "path", Kind: host.Nondeterministic, Effect: path},
		{Name: "dir", Kind: host.Nondeterministic, Effect: dir},
		{Name: "list", Kind: host.Read, Effect: list},
		{Name: "exists", Kind: host.Read, Effect: exists},
		{Name: "remove", Kind: host.Write, Effect: remove, Path: 1},
	}}
}

func path(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	full, err := w.Temp.Path(name)
	return []host.Value{full}, err
}

func dir(_ context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	folder, err := w.Temp.Dir()
	return []host.Value{folder}, err
}

func list(_ context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	folder, err := w.Temp.Dir()
	if err != nil {
		return nil, err
	}
	entries, err := w.Files.List(folder)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	table, err := host.Table(names)
	return []host.Value{table}, err
}

func exists(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	if !w.Files.InTemp(name) {
		return []host.Value{false}, nil
	}
	if !filepath.IsAbs(name) { // a relative name may also be one in another folder
		if name, err = w.Temp.Path(name); err != nil {
			return []host.Value{false}, nil //nolint:nilerr // it leaves the folder, so it is not in it
		}
	}
	there, err := w.Files.Exists(name)
	if fault.CodeOf(err) == fault.Denied {
		return []host.Value{false}, nil
	}
	return []host.Value{there}, err
}

func remove(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, err := args.String(1)
	if err != nil {
		return nil, err
	}
	switch err := w.Files.Remove(name); fault.CodeOf(err) {
	case fault.NotFound:
		return []host.Value{false}, nil
	default:
		return []host.Value{err == nil}, err
	}
}
