package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/luanette/luanette/internal/scripting/js"
)

// idle is the number of idle instances, sessions or runtimes.
const idle = 1000

// small is the script that each has run before.
const small = "var count = 0; function next(x) { count += x; return count } next(1)"

// holders create n idle instances, sessions or runtimes and return a value that keeps them
// reachable.
var holders = map[string]func(ctx context.Context, own ours, n int) (any, error){
	"instances": holdInstances,
	"sessions":  holdSessions,
	"goja":      holdGoja,
}

// printIdle measures each kind in a process of its own.
func printIdle(ctx context.Context) error {
	held := map[string]float64{}
	for role := range holders {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		command := exec.CommandContext(ctx, self, "-role", role)
		command.Stderr = os.Stderr
		output, err := command.Output()
		if err != nil {
			return fmt.Errorf("hold %s: %w", role, err)
		}
		var bytes float64
		if _, err := fmt.Sscan(string(output), &bytes); err != nil {
			return err
		}
		held[role] = bytes
	}
	for _, row := range [][2]string{{"idle instance", "instances"}, {"idle session", "sessions"}} {
		own, goja := held[row[1]], held["goja"]
		fmt.Printf(rowFormat, row[0], kibibytes(own), kibibytes(goja), ratio(own, goja))
	}
	return nil
}

func kibibytes(bytes float64) string { return fmt.Sprintf("%.0f KiB", bytes/1024) }

// measureIdle writes the resident bytes of one idle instance, session or runtime.
func measureIdle(ctx context.Context, w io.Writer, role string) error {
	hold, ok := holders[role]
	if !ok {
		return fmt.Errorf("no role %q", role)
	}
	own, err := newOurs()
	if err != nil {
		return err
	}
	if _, err := hold(ctx, own, 1); err != nil { // creates what all share
		return err
	}
	before, err := resident()
	if err != nil {
		return err
	}
	kept, err := hold(ctx, own, idle)
	if err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	runtime.KeepAlive(kept)
	_, err = fmt.Fprintln(w, (after-before)/idle)
	return err
}

// holdInstances runs scripts twice, so that its instances are like those of a pool after a
// while: used and reset.
func holdInstances(ctx context.Context, own ours, n int) (any, error) {
	return own, errors.Join(occupy(ctx, own, n), occupy(ctx, own, n))
}

// occupy runs n scripts that wait until all run, so that each has an instance, which
// stays in the pool.
func occupy(ctx context.Context, own ours, n int) error {
	var all, done sync.WaitGroup
	all.Add(n)
	host := js.HostFuncs{OnCall: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		all.Done()
		all.Wait()
		return nil, nil
	}}
	failures := make([]error, n)
	for i := range n {
		done.Go(func() { _, failures[i] = own.engine.Run(ctx, program(small+"; await later()"), host) })
	}
	done.Wait()
	return errors.Join(failures...)
}

func holdSessions(ctx context.Context, own ours, n int) (any, error) {
	sessions := make([]*js.Session, n)
	for i := range sessions {
		sessions[i] = own.engine.NewSession()
		if _, err := sessions[i].Eval(ctx, program(small), js.HostFuncs{}); err != nil {
			return nil, err
		}
	}
	return sessions, nil
}

func holdGoja(ctx context.Context, _ ours, n int) (any, error) {
	realms := make([]*realm, n)
	for i := range realms {
		var err error
		if realms[i], err = newRealm(); err != nil {
			return nil, err
		}
		if _, err := realms[i].run(ctx, small); err != nil {
			return nil, err
		}
	}
	return realms, nil
}

// resident is the resident memory of this process after garbage collection.
func resident() (float64, error) {
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read the resident memory, which needs Linux: %w", err)
	}
	var size, pages float64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0, err
	}
	return pages * float64(os.Getpagesize()), nil
}
