package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/packages"
)

// installation is a package that is being installed for an upstream.
type installation struct {
	packaged
	waiting func() []client.Waiting
	done    bool
	err     error
}

// installPackages installs the packages of upstreams and says how that went. If it is interrupted
// nothing is lost: the rest is installed when the servers start.
func installPackages(ctx context.Context, proc *process, loaded *config.Loaded, names []string, words io.Writer) error {
	list, err := packagedUpstreams(loaded, proc, names)
	if err != nil {
		return err
	}
	store := loaded.Packages(loaded.Launcher(proc.Env), nil)
	all := make([]*installation, len(list))
	var mu sync.Mutex // of what changes in them
	var work sync.WaitGroup
	for i, p := range list {
		doing, waiting := followConnection(p.spec.Name)
		one := &installation{packaged: p, waiting: waiting}
		all[i] = one
		work.Go(func() {
			_, err := store.Ensure(ctx, p.request, installing(doing))
			mu.Lock()
			defer mu.Unlock()
			one.done, one.err = true, err
		})
	}
	stop := reportWaiting(proc, func() []client.Waiting {
		mu.Lock()
		defer mu.Unlock()
		return pendingOf(all)
	})
	work.Wait()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return printInstallations(words, all)
}

// pendingOf are the installations that go on, those that wait for their turn last.
func pendingOf(all []*installation) (list []client.Waiting) {
	for _, one := range all {
		if !one.done {
			list = append(list, one.waiting()...)
		}
	}
	slices.SortStableFunc(list, func(a, b client.Waiting) int { return turn(a) - turn(b) })
	return list
}

func turn(w client.Waiting) int {
	if w.State == packages.Waits {
		return 1
	}
	return 0
}

// printInstallations says what is installed, and why something is not.
func printInstallations(words io.Writer, all []*installation) error {
	installed := 0
	for _, one := range all {
		switch {
		case one.err == nil:
			installed++
		case packages.MayWorkByNPX(one.err):
			fmt.Fprintf(words, "%s: npx runs it, as it cannot be installed: %s\n", one.spec.Name, plainText(one.err.Error()))
		default:
			fmt.Fprintf(words, "%s: %s\n  %s\n", one.spec.Name, plainText(one.err.Error()), plainText(fault.HintOf(one.err)))
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(words, "%d of %s installed\n", installed, amount(len(all), "package"))
	return err
}
