package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// engine runs a script in a new realm and returns its result, or that of its promise, as
// JSON. The host has three functions: echo returns its argument, later returns a promise
// that another goroutine resolves with it, and rows returns a megabyte. Arguments and
// results are passed as JSON, as those of tools are.
type engine interface {
	run(ctx context.Context, source string) (string, error)
}

// work is a script, and how often it runs in a turn.
type work struct {
	name   string
	source string
	runs   int // in a turn
	units  int // measured operations in a run
}

var works = []work{
	{"start of a run", "", 300, 1},
	{"synchronous call of the host", "let n = 0; for (let i = 0; i < 2000; i++) n += echo({i}).i; n", 3, 2000},
	{"asynchronous call", "(async () => { let n = 0; for (let i = 0; i < 2000; i++) n += (await later({i})).i; return n })()", 2, 2000},
	{"1 MB of JSON in", "rows().length", 2, 1},
	{"1 MB of JSON in and out", "rows()", 2, 1},
}

// megabyte is a table of small records, like the results of tools.
var megabyte = func() json.RawMessage {
	var b strings.Builder
	for i := 0; b.Len() < 1_000_000; i++ {
		fmt.Fprintf(&b, `,{"id":%d,"name":"row %d","tags":["a","b"],"price":%d.5,"note":"some text here"}`, i, i, i)
	}
	return json.RawMessage("[" + b.String()[1:] + "]")
}()

// race returns the best time of each engine for one unit.
func (w work) race(ctx context.Context, engines [2]engine, turns int) (best [2]time.Duration, err error) {
	var results [2]string
	for range turns {
		for i, e := range engines {
			runtime.GC()
			start := processorTime()
			for range w.runs {
				if results[i], err = e.run(ctx, w.source); err != nil {
					return best, fmt.Errorf("%s: %w", w.name, err)
				}
			}
			used := (processorTime() - start) / time.Duration(w.runs*w.units)
			if best[i] == 0 || used < best[i] {
				best[i] = used
			}
		}
		if results[0] != results[1] {
			return best, fmt.Errorf("%s: the results are %.80q and %.80q", w.name, results[0], results[1])
		}
	}
	return best, nil
}

// processorTime is the CPU time of this process so far, user and system.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
