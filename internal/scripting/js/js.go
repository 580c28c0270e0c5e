// Package js runs JavaScript and TypeScript in a sandbox: QuickJS compiled to
// WebAssembly, on a runtime written in Go. The script runs in an interpreter with its
// own memory; it has effects only through a [Host], and its time and memory are limited.
//
// An [Engine] compiles the interpreter once and starts scripts from an image of memory in
// which the realm is ready. [Engine.Run] runs a script once; a [Session] keeps what
// scripts define from one evaluation to the next, and can be forked, saved and restored.
package js

import (
	"context"
	"encoding/json"
	"time"
)

// Program is a script and its environment.
type Program struct {
	// Source is JavaScript, or TypeScript whose types are stripped. It may use top-level
	// await. Its result is what it puts into __result__, what it returns, or the value of
	// its last expression, in this order.
	Source string
	// Name stands for the source in stacks. "" means "script.js".
	Name string
	// Funcs are functions of the host that only this program has, as globals. Existing
	// globals are not replaced.
	Funcs []Func
	// Entry is called after the script; the result is then what it returns. It may be
	// nil.
	Entry *Entry
	// OnLine receives each line of the console when it is written, on the script's
	// goroutine. It may be nil.
	OnLine func(Line)
	Limits Limits
}

// Entry is a function that a script defines at the top level, to be called from outside.
type Entry struct {
	Name     string          // an identifier
	Argument json.RawMessage // what it is called with; nil is undefined
}

// Func is a function of the host that a script can call.
type Func struct {
	Name string
	// Target is the name the host is called with; "" means Name.
	Target string
	// Sync functions return their value, by [Host.CallSync]; others a promise.
	Sync bool
	// Hidden functions of a [Module] are for its own source only.
	Hidden bool
}

// Limits limit one run. Zero fields have defaults; there is no unlimited.
type Limits struct {
	Time     time.Duration // total time, including waiting; 5 s; negative: no limit
	Memory   int64         // bytes of the script's memory; the engine's, which is also the most
	Output   int           // bytes of the result as JSON; 1 MiB
	Calls    int           // calls of the host, all kinds together; 1,000
	Parallel int           // asynchronous calls at the same time, more wait; 64
	Steps    int64         // branches, counted in ten thousands; 0: no limit
	Reserve  Reserve       // memory that several scripts share; nil takes it from nowhere
	Meter    Meter         // measures the script while it computes; may be nil
}

// Meter is told what a script does, on the goroutine that runs it.
type Meter interface {
	// Tick is called from time to time while the script computes. It may end the run by
	// cancelling its context.
	Tick()
	// Pause is called before the script waits for answers, and Resume afterwards.
	Pause()
	Resume()
}

// Reserve is memory that several scripts share.
type Reserve interface {
	// Take waits for n more bytes, or returns why there are none. The caller of the run
	// gives back what it took.
	Take(ctx context.Context, n int64, wait bool) error
}

func (l Limits) withDefaults(memory int64) Limits {
	fill := func(v *int, by int) {
		if *v <= 0 {
			*v = by
		}
	}
	fill(&l.Output, 1<<20)
	fill(&l.Calls, 1000)
	fill(&l.Parallel, 64)
	if l.Time == 0 {
		l.Time = 5 * time.Second
	}
	if l.Memory <= 0 || l.Memory > memory {
		l.Memory = memory
	}
	return l
}

// deadline returns a context that ends when the run's time is over.
func (l Limits) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Time < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, l.Time, errTime)
}

// Outcome is the outcome of a run, also of one that failed.
type Outcome struct {
	Result json.RawMessage // nil when undefined
	Calls  int             // calls of the host
	Absent bool            // the script does not define Program.Entry
	Memory int64           // bytes of memory at the end
}

// Line is one line of console output.
type Line struct {
	Level string // debug, log, info, warn or error
	Text  string
}

// Host is a script's only access to anything outside its memory. Arguments are a JSON
// array. A nil answer is undefined in the script. An error becomes an exception with its
// message and, if it is a fault, its code and hint.
type Host interface {
	// Start begins an asynchronous function. It is called on the script's goroutine, in
	// the order in which the script calls, and must not block. The returned function
	// does the work, on its own goroutine, in parallel with others, and must return when
	// ctx ends. sleep(ms) is the function "sleep".
	Start(name string, args json.RawMessage) func(ctx context.Context) (json.RawMessage, error)
	// Next returns which of several calls in progress the script gets the answer of
	// next, by its number: 1 is the first call of the script. first waits for any call
	// that has an answer.
	Next(ctx context.Context, first func(ctx context.Context) (int, error)) (int, error)
	// CallSync serves a synchronous function; the script waits for it.
	CallSync(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	// Now is the clock that Date reads. It must not block.
	Now(ctx context.Context) time.Time
	// Seed starts Math.random, asked once in a run that uses it. It must not block.
	Seed(ctx context.Context) uint64
}
