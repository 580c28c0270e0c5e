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

// engine runs a script in a fresh realm and returns its result as JSON. A promise
// is waited for. The script finds three functions of the host: echo answers with
// its argument, later does so by a promise kept on another goroutine, and rows
// gives a megabyte. Arguments and answers cross as JSON, which is what tools take
// and give.
type engine interface {
	run(ctx context.Context, source string) (string, error)
}

// work is a script, and how much of it makes a turn.
type work struct {
	name   string
	source string
	runs   int // in a turn
	units  int // of what the row is about, in a run
}

var works = []work{
	{"start of a run", "", 300, 1},
	{"synchronous call of the host", "let n = 0; for (let i = 0; i < 2000; i++) n += echo({i}).i; n", 3, 2000},
	{"asynchronous call", "(async () => { let n = 0; for (let i = 0; i < 2000; i++) n += (await later({i})).i; return n })()", 2, 2000},
	{"1 MB of JSON in", "rows().length", 2, 1},
	{"1 MB of JSON in and out", "rows()", 2, 1},
}

// megabyte is a table of small records as tools answer with.
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

// processorTime is what this process has used so far, user and system.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
