// Package temp is the temp module of scripts: files in the run's own folder.
package temp

import (
	_ "embed"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed temp.md
var page string

// Module is the global temp.
func Module() host.Module {
	return host.Module{Name: "temp", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "path", Kind: host.Nondeterministic, Effect: host.Bind(path), Inspected: inspectedPath},
		{Name: "dir", Kind: host.Nondeterministic, Effect: host.Bind(dir), Inspected: host.Answers("temp")},
		{Name: "list", Kind: host.Read, Effect: host.Bind(list)},
		{Name: "exists", Kind: host.Read, Effect: host.Bind(exists)},
		{Name: "remove", Kind: host.Write, Effect: host.Bind(remove), Path: 1, Action: host.Does("remove", 1)},
	}}
}

func path(w *host.Services, name string) (string, error) { return w.Temp.Path(name) }

// inspectedPath(name) is a path below the folder that dir answers then.
func inspectedPath(args host.Args) []host.Value {
	name, _ := args.At(1).(string)
	return []host.Value{"temp/" + name}
}

func dir(w *host.Services) (string, error) { return w.Temp.Dir() }

func list(w *host.Services) ([]string, error) {
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
	return names, nil
}

func exists(w *host.Services, name string) (bool, error) {
	if !w.Files.InTemp(name) {
		return false, nil
	}
	if !filepath.IsAbs(name) { // a relative name may also be one in another folder
		var err error
		if name, err = w.Temp.Path(name); err != nil {
			return false, nil //nolint:nilerr // it leaves the folder, so it is not in it
		}
	}
	there, err := w.Files.Exists(name)
	if fault.CodeOf(err) == fault.Denied {
		return false, nil
	}
	return there, err
}

func remove(w *host.Services, name string) (bool, error) {
	err := w.Files.Remove(name)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}
