// Package results is the results module of scripts: values stored between runs under
// short handles.
package results

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed results.md
var page string

// Module is the global results.
func Module() host.Module {
	return host.Module{Name: "results", Page: page, Funcs: []host.Func{
		{Name: "get", Kind: host.Read, Effect: get},
		{Name: "slice", Kind: host.Read, Effect: slice},
		{Name: "list", Kind: host.Read, Effect: list},
		{Name: "keep", Kind: host.Write, Effect: keep},
	}}
}

// owner returns whose results a run may use.
func owner(w *host.Services) string {
	if w.Caller == nil {
		return ""
	}
	return w.Caller.User
}

func get(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	handle, pointer, err := place(w, args)
	if err != nil {
		return nil, err
	}
	value, err := w.Results.Read(ctx, owner(w), handle, pointer)
	return []host.Value{value}, err
}

// place reads the handle and the pointer, the first arguments of every function.
func place(w *host.Services, args host.Args) (handle, pointer string, err error) {
	if handle, err = args.String(1); err != nil {
		return "", "", err
	}
	if pointer, err = args.OptString(2, ""); err != nil {
		return "", "", err
	}
	if w.Results == nil {
		return "", "", errNoResults(args)
	}
	return handle, pointer, nil
}

func slice(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	handle, pointer, err := place(w, args)
	if err != nil {
		return nil, err
	}
	skip, err := args.OptInt(3, 0)
	if err != nil {
		return nil, err
	}
	count, err := args.OptInt(4, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if skip < 0 || count < 0 {
		return nil, fault.New(fault.InvalidParams, "%s: skip and count must not be negative", args.Func)
	}
	part, total, err := w.Results.Slice(ctx, owner(w), handle, pointer, int(min(skip, math.MaxInt32)), int(min(count, math.MaxInt32)))
	return []host.Value{part, int64(total)}, err
}

func list(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if w.Results == nil {
		return nil, errNoResults(args)
	}
	all, err := w.Results.List(ctx, owner(w))
	if err != nil {
		return nil, err
	}
	table, err := host.Table(append([]host.StoredResult{}, all...))
	return []host.Value{table}, err
}

func keep(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if w.Results == nil {
		return nil, errNoResults(args)
	}
	value, err := json.Marshal(args.At(1))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "%s", args.Func)
	}
	handle, err := w.Results.Keep(ctx, owner(w), "script", value)
	return []host.Value{handle}, err
}

func errNoResults(args host.Args) error {
	return fault.New(fault.Unavailable, "%s: results are not available here", args.Func)
}
