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
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Program is a script and its environment.
type Program struct {
	// Source is JavaScript, or TypeScript whose types are stripped. It may use top-level
	// await. Its result is what it puts into __result__, what it returns, or the value of
	// its last expression, in this order.
	Source string
	// Name stands for the source in stacks. "" means "script.js".
	Name string
	// Globals are variables the script finds, by name.
	Globals map[string]json.RawMessage
	// Namespaces are global objects below which every path is an asynchronous function of
	// the host: with "mcp", mcp.files.read({…}) calls the host as "mcp.files.read".
	Namespaces []string
	// Funcs are functions of the host with fixed names.
	Funcs []Func
	// Resolve is called for each identifier in the source and returns whether it is a
	// function of the host, so that thousands of functions cost nothing while they are
	// not used. Existing globals are not replaced. It may be nil.
	Resolve func(identifier string) (Func, bool)
	// Entry is called after the script; the result is then what it returns. It may be
	// nil.
	Entry *Entry
	// OnLine receives each console line when it is written, on the script's goroutine.
	// It may be nil.
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
	// Name is where the script finds it; dots make objects: "tools.search".
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
	Logs     int           // bytes of recorded console text; 256 KiB
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
	fill(&l.Logs, 256<<10)
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
	Result  json.RawMessage // nil when undefined
	Logs    []Line
	Dropped int           // console lines beyond Limits.Logs
	Calls   int           // calls of the host
	Absent  bool          // the script does not define Program.Entry
	Memory  int64         // bytes of memory at the end
	Took    time.Duration // of the run; start-up of the engine excluded
}

// Line is one line of console output.
type Line struct {
	Level string    `json:"level"` // debug, log, info, warn or error
	Time  time.Time `json:"time"`  // by the machine's clock
	Text  string    `json:"text"`
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

// HostFuncs is a Host made of functions. Nil fields have defaults: no such function, a
// real sleep, the system clock, a random seed.
type HostFuncs struct {
	OnCall func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	OnSync func(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	OnNow  func(ctx context.Context) time.Time
	OnSeed func(ctx context.Context) uint64
}

// Start calls OnCall, on the call's own goroutine; without it only "sleep" exists.
func (h HostFuncs) Start(name string, args json.RawMessage) func(context.Context) (json.RawMessage, error) {
	return func(ctx context.Context) (json.RawMessage, error) { return h.call(ctx, name, args) }
}

// Next returns answers in the order they arrive.
func (h HostFuncs) Next(ctx context.Context, first func(context.Context) (int, error)) (int, error) {
	return first(ctx)
}

func (h HostFuncs) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	switch {
	case h.OnCall != nil:
		return h.OnCall(ctx, name, args)
	case name == "sleep":
		return nil, Sleep(ctx, args)
	default:
		return nil, fault.New(fault.ToolNotFound, "no function %s", name)
	}
}

// CallSync calls OnSync.
func (h HostFuncs) CallSync(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if h.OnSync == nil {
		return nil, fault.New(fault.ToolNotFound, "no function %s", name)
	}
	return h.OnSync(ctx, name, args)
}

// Now calls OnNow, or returns the system time.
func (h HostFuncs) Now(ctx context.Context) time.Time {
	if h.OnNow == nil {
		return time.Now()
	}
	return h.OnNow(ctx)
}

// Seed calls OnSeed, or returns a random seed.
func (h HostFuncs) Seed(ctx context.Context) uint64 {
	if h.OnSeed == nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		return binary.LittleEndian.Uint64(b[:])
	}
	return h.OnSeed(ctx)
}

// Sleep implements sleep(ms) in real time: args is the JSON array [ms]. It returns early
// when ctx ends.
func Sleep(ctx context.Context, args json.RawMessage) error {
	var ms []float64
	if err := json.Unmarshal(args, &ms); err != nil || len(ms) != 1 || ms[0] < 0 {
		return fault.New(fault.InvalidParams, "sleep takes a number of milliseconds")
	}
	const longest = float64(24 * time.Hour / time.Millisecond)
	timer := time.NewTimer(time.Duration(min(ms[0], longest) * float64(time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var _ Host = HostFuncs{}
