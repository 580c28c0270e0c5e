// Package progress is the progress function of scripts: it reports progress to the
// caller.
package progress

import (
	_ "embed"

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

func progress(w *host.Services, fraction float64, message *string) {
	w.Progress(min(max(fraction, 0), 1), host.Or(message, ""))
}
