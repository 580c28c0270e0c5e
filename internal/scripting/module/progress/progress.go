// Package progress is the progress function of scripts: it reports progress to the
// caller.
package progress

import (
	_ "embed"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed progress.md
var page string

// Module is the global function progress.
func Module() host.Module {
	return host.Module{Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "progress", Kind: host.Observe, Effect: host.Bind(progress)},
	}}
}

// progress(fraction, message?) reports progress. A fraction that is a little out of range is
// a sum of rounding errors; a count is a mistake, and so are more arguments.
func progress(w *host.Services, args host.Args, fraction float64, message *string) error {
	_, number := args.At(2).(int64)
	if number || args.Len() > 2 || fraction >= 2 {
		return fault.New(fault.InvalidParams, "bad argument #1 to 'progress' (a fraction from 0 to 1, then a message, are expected)").
			WithHint("write progress(done / total, \"message\")")
	}
	w.Progress(min(max(fraction, 0), 1), host.Or(message, ""))
	return nil
}
