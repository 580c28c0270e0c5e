// Package clock is the clock module of scripts: the run's own time.
package clock

import (
	"context"
	_ "embed"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed clock.md
var page string

// Module is the global clock.
func Module() host.Module {
	return host.Module{Name: "clock", Text: host.Text{Page: page}, Funcs: []host.Func{
		{Name: "now", Kind: host.Nondeterministic, Effect: host.Bind(now), Varies: true},
		// start is repeated when a job resumes, because the clock is not part of its journal
		{Name: "start", Kind: host.Observe, Effect: host.Bind(start)},
		{Name: "advance", Kind: host.Nondeterministic, Effect: host.Bind(advance), Varies: true},
		{Name: "sleep", Kind: host.Nondeterministic, Effect: host.Bind(sleep), Waits: true, Inspected: host.Answers()},
	}}
}

func now(w *host.Services) int64 { return w.Clock.Milliseconds() }

func start(w *host.Services, args host.Args, milliseconds float64) error {
	if milliseconds < 0 || milliseconds > 1e15 {
		return fault.New(fault.InvalidParams, "%s: %v is not a time in milliseconds since 1970", args.Func, milliseconds)
	}
	w.Clock.Start(int64(milliseconds))
	return nil
}

func advance(w *host.Services, args host.Args, milliseconds float64) (int64, error) {
	if err := checkDuration(args, milliseconds); err != nil {
		return 0, err
	}
	w.Clock.Advance(int64(milliseconds))
	return w.Clock.Milliseconds(), nil
}

func sleep(ctx context.Context, w *host.Services, args host.Args, milliseconds float64) error {
	if err := checkDuration(args, milliseconds); err != nil {
		return err
	}
	wait := time.Duration(milliseconds) * time.Millisecond
	if began := host.Began(ctx); !began.IsZero() { // the run resumes: only what was left
		wait = max(0, wait-w.Clock.Now().Sub(began))
	}
	return w.Clock.Sleep(ctx, wait)
}

func checkDuration(args host.Args, milliseconds float64) error {
	if milliseconds < 0 || milliseconds > 1e12 {
		return fault.New(fault.InvalidParams, "%s: %v milliseconds is not a valid duration", args.Func, milliseconds)
	}
	return nil
}
