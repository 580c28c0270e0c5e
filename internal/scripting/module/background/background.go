// Package background is the background function of scripts: it runs a function as a job
// that outlives the run and survives a crash. The engine's binding writes the function
// down as a script of its own.
package background

import (
	"context"
	"embed"
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed background.md prelude.lua prelude.js
var files embed.FS

// Module is the global function background.
func Module() host.Module {
	return host.Module{Text: host.ReadText(files), Funcs: []host.Func{
		{
			Name: "__background", Hidden: true, Kind: host.Idempotent, Starts: true, Effect: host.Bind(start), Check: check,
			Action: func(args host.Args) string { return "start a function as a job" + host.Sized(args.At(2)) },
		},
	}}
}

// start(language, source, params?) starts a job.
func start(ctx context.Context, w *host.Services, args host.Args, language, source string, value host.Value) (string, error) {
	if err := check(ctx, w, args); err != nil {
		return "", err
	}
	params, err := json.Marshal(value)
	if err != nil {
		return "", fault.Wrap(fault.InvalidParams, err, "background")
	}
	return w.Jobs.Start(ctx, host.NewJob{Source: source, Language: language, Params: params, Tags: []string{"background"}, Token: w.Token(ctx)})
}

func check(_ context.Context, w *host.Services, _ host.Args) error {
	if w.Jobs == nil {
		return fault.New(fault.Unavailable, "background: no jobs run in this process").
			WithHint("run the script on a server; within a run, parallel.spawn runs functions concurrently")
	}
	return nil
}
