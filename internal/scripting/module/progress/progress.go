// Package progress is the progress function of scripts: it reports progress to the
// caller.
package progress

import (
	"context"
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed progress.md
var page string

// Module is the global function progress.
func Module() host.Module {
	return host.Module{Page: page, Funcs: []host.Func{
		{Name: "progress", Kind: host.Observe, Effect: progress},
	}}
}

func progress(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	fraction, err := args.Float(1)
	if err != nil {
		return nil, err
	}
	message, err := args.OptString(2, "")
	if err != nil {
		return nil, err
	}
	w.Progress(min(max(fraction, 0), 1), message)
	return nil, nil
}
