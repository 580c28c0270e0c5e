// Package results is the results module of scripts: values stored between runs under
// short handles.
package results

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed results.md
var page string

// Module is the global results.
func Module() host.Module {
	return host.Module{Name: "results", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "get", Kind: host.Read, Effect: host.Bind(get)},
		{Name: "slice", Kind: host.Read, Effect: host.Bind(slice)},
		{Name: "list", Kind: host.Read, Effect: host.Bind(list)},
		{Name: "keep", Kind: host.Write, Effect: host.Bind(keep)},
	}}
}

// owner returns whose results a run may use.
func owner(w *host.Services) string {
	if w.Caller == nil {
		return ""
	}
	return w.Caller.User
}

// store returns the stored results, or an error if there are none.
func store(w *host.Services, args host.Args) (host.Results, error) {
	if w.Results == nil {
		return nil, fault.New(fault.Unavailable, "%s: results are not available here", args.Func)
	}
	return w.Results, nil
}

func get(ctx context.Context, w *host.Services, args host.Args, handle string, pointer *string) (json.RawMessage, error) {
	results, err := store(w, args)
	if err != nil {
		return nil, err
	}
	return results.Read(ctx, owner(w), handle, host.Or(pointer, ""))
}

func slice(ctx context.Context, w *host.Services, args host.Args, handle string) (json.RawMessage, int, error) {
	results, err := store(w, args)
	if err != nil {
		return nil, 0, err
	}
	pointer, err := args.OptString(2, "")
	if err != nil {
		return nil, 0, err
	}
	skip, err := args.OptInt(3, 0)
	if err != nil {
		return nil, 0, err
	}
	count, err := args.OptInt(4, math.MaxInt32)
	if err != nil {
		return nil, 0, err
	}
	if skip < 0 || count < 0 {
		return nil, 0, fault.New(fault.InvalidParams, "%s: skip and count must not be negative", args.Func)
	}
	part, err := results.Slice(ctx, owner(w), handle, pointer, int(min(skip, math.MaxInt32)), int(min(count, math.MaxInt32)))
	return part.Value, part.Total, err
}

// stored describes a stored value.
type stored struct {
	Handle  string    `json:"handle"`
	Source  string    `json:"source"`
	Shape   string    `json:"shape"`
	Bytes   int64     `json:"bytes"`
	Expires time.Time `json:"expires"`
}

func list(ctx context.Context, w *host.Services, args host.Args) ([]stored, error) {
	results, err := store(w, args)
	if err != nil {
		return nil, err
	}
	all, err := results.List(ctx, owner(w))
	var list []stored
	for _, one := range all {
		list = append(list, stored{one.Handle, one.Source, one.Shape, one.Size, one.Expires})
	}
	return list, err
}

func keep(ctx context.Context, w *host.Services, args host.Args, value host.Value) (string, error) {
	results, err := store(w, args)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fault.Wrap(fault.InvalidParams, err, "%s", args.Func)
	}
	kept, err := results.Put(ctx, owner(w), "script", raw)
	return kept.Handle, err
}
