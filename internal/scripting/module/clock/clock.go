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
	return host.Module{Name: "clock", Page: page, Funcs: []host.Func{
		{Name: "now", Kind: host.Nondeterministic, Effect: now},
		// start is repeated when a job resumes, because the clock is not part of its journal
		{Name: "start", Kind: host.Observe, Effect: start},
		{Name: "advance", Kind: host.Nondeterministic, Effect: advance},
		{Name: "sleep", Kind: host.Nondeterministic, Effect: sleep, Waits: true},
	}}
}

func now(_ context.Context, w *host.Services, _ host.Args) ([]host.Value, error) {
	return []host.Value{w.Clock.Milliseconds()}, nil
}

func start(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	milliseconds, err := args.Float(1)
	if err != nil {
		return nil, err
	}
	if milliseconds < 0 || milliseconds > 1e15 {
		return nil, fault.New(fault.InvalidParams, "%s: %v is not a time in milliseconds since 1970", args.Func, milliseconds)
	}
	w.Clock.Start(int64(milliseconds))
	return nil, nil
}

func advance(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	milliseconds, err := duration(args)
	if err != nil {
		return nil, err
	}
	w.Clock.Advance(milliseconds)
	return []host.Value{w.Clock.Milliseconds()}, nil
}

func sleep(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	milliseconds, err := duration(args)
	if err != nil {
		return nil, err
	}
	wait := time.Duration(milliseconds) * time.Millisecond
	if began := host.Began(ctx); !began.IsZero() { // the run resumes: only what was left
		wait = max(0, wait-w.Clock.Now().Sub(began))
	}
	return nil, w.Clock.Sleep(ctx, wait)
}

// duration reads the one argument: milliseconds, not negative, because a run's time
// never goes back.
func duration(args host.Args) (int64, error) {
	milliseconds, err := args.Float(1)
	if err != nil {
		return 0, err
	}
	if milliseconds < 0 || milliseconds > 1e12 {
		return 0, fault.New(fault.InvalidParams, "%s: %v milliseconds is not a valid duration", args.Func, milliseconds)
	}
	return int64(milliseconds), nil
}
