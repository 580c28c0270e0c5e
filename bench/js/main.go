// Command js compares our JavaScript engine with goja: the start of a run, calls of the
// host, a megabyte of JSON in and out, and the memory of a thousand idle instances. Both
// engines run the same scripts alternately; the CPU time of the best turn counts.
//
//	cd bench/js && go run . [-turns 5]
//
// The two differ in their guarantees. Ours runs the script in a memory of its own and can
// stop it anywhere; goja shares the heap of the program and has no limits. On a busy machine of two processors a start cost 15 times goja's (a third
// of a millisecond, of which a script waits for half: used instances are wiped beside
// the scripts), a synchronous call of the host 3.8 times, an asynchronous one 4.5, a
// megabyte of JSON 0.9 times. An idle instance held 640 KiB, an idle session 125 KiB,
// a goja runtime 15 KiB.
//
// If the two have different results for a script, it exits with status 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/scripting/js"
)

func main() {
	var (
		role  = flag.String("role", "", "what to create and leave idle; used by the program itself")
		turns = flag.Int("turns", 5, "number of turns of each engine")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *role == "" {
		err = compare(ctx, *turns)
	} else {
		err = measureIdle(ctx, os.Stdout, *role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/js:", err)
		os.Exit(1)
	}
}

const rowFormat = "| %-28s | %12s | %12s | %9s |\n"

// compare prints a row for each work, then the memory of idle instances.
func compare(ctx context.Context, turns int) error {
	own, err := newOurs()
	if err != nil {
		return err
	}
	if err := own.engine.Warm(ctx); err != nil {
		return err
	}
	fmt.Printf("CPU time, user and system, best of %d turns; resident memory of %d idle ones.\n\n", turns, idle)
	fmt.Printf(rowFormat, "", "ours", "goja", "ours/goja")
	fmt.Println("|---|--:|--:|--:|")
	for _, w := range works {
		best, err := w.race(ctx, [2]engine{own, other{}}, turns)
		if err != nil {
			return err
		}
		fmt.Printf(rowFormat, w.name, shown(best[0]), shown(best[1]), ratio(best[0], best[1]))
	}
	return printIdle(ctx)
}

func shown(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

func ratio[N ~int64 | ~float64](a, b N) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

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
	host := functions(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		all.Done()
		all.Wait()
		return nil, nil
	})
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
		if _, err := sessions[i].Eval(ctx, program(small), functions(answer)); err != nil {
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
