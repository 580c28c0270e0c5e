package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/lua"
)

// The columns of a row.
const (
	reference = iota
	ours
	gopher
	columns
)

// engine is a command that runs the Lua program named by its last argument.
type engine struct {
	name    string
	command []string
}

// allEngines returns the engines in the order of the columns.
func allEngines(ctx context.Context) ([columns]engine, error) {
	var engines [columns]engine
	path, err := exec.LookPath("lua5.4")
	if err != nil {
		return engines, fmt.Errorf("find the reference (install the package lua5.4): %w", err)
	}
	version, err := exec.CommandContext(ctx, path, "-v").CombinedOutput()
	if err != nil {
		return engines, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	self, err := os.Executable()
	if err != nil {
		return engines, err
	}
	release, _, _ := strings.Cut(string(version), "  ")
	engines[reference] = engine{release, []string{path}}
	engines[ours] = engine{"ours", []string{self, "-role", "ours"}}
	engines[gopher] = engine{"gopher-lua", []string{self, "-role", "gopher"}}
	return engines, nil
}

// result is the result of running a program with an engine.
type result struct {
	best time.Duration // CPU time, user and system
	// failed says why there is no time, or nothing.
	failed string
}

// race runs a program turns times with each engine, one after the other. An output that
// differs from the reference's is an error for our engine and a failure for others.
func race(ctx context.Context, engines [columns]engine, program string, turns int) ([columns]result, error) {
	var row [columns]result
	var want []byte
	for range turns {
		for i, e := range engines {
			if row[i].failed != "" {
				continue
			}
			output, used, err := e.run(ctx, program)
			switch {
			case ctx.Err() != nil:
				return row, ctx.Err()
			case err != nil && i != gopher:
				return row, fmt.Errorf("run %s with %s: %w", program, e.name, err)
			case err != nil:
				row[i].failed = err.Error()
			case want == nil: // of the reference, which comes first
				want = output
			case !bytes.Equal(output, want) && i != gopher:
				return row, fmt.Errorf("%s prints %q with %s, not %q", program, output, e.name, want)
			case !bytes.Equal(output, want):
				row[i].failed = fmt.Sprintf("prints %q, not %q", output, want)
			}
			if row[i].best == 0 || used < row[i].best {
				row[i].best = used
			}
		}
	}
	return row, nil
}

// run returns the output of a program and its CPU time.
func (e engine) run(ctx context.Context, program string) ([]byte, time.Duration, error) {
	command := exec.CommandContext(ctx, e.command[0], append(e.command[1:len(e.command):len(e.command)], program)...)
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		if line, _, _ := strings.Cut(complaint.String(), "\n"); line != "" {
			return nil, 0, fmt.Errorf("%w: %s", err, line)
		}
		return nil, 0, err
	}
	spent := command.ProcessState
	return output.Bytes(), spent.UserTime() + spent.SystemTime(), nil
}

// idleStates is the number of idle states.
const idleStates = 10_000

// printStates measures states in a process of its own.
func printStates(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, self, "-role", "states")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// measureStates measures new states, states that have run a small script, and the memory
// of many idle ones.
func measureStates(w io.Writer) error {
	const script = "local function f(x) return x + 1 end count = f(count or 0) return count"
	for _, c := range []fresh{
		{"A fresh state with all libraries", lua.All(), ""},
		{"A fresh sandbox", lua.Sandboxed(), ""},
		{"A sandbox that has run a small script", lua.Sandboxed(), script},
	} {
		cost, err := c.measure()
		if err != nil {
			return err
		}
		held, err := c.hold()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %.1f µs of CPU time, %d bytes in %d allocations; %d idle ones hold %.1f MiB.\n",
			c.what, cost.time.Seconds()*1e6, cost.bytes, cost.allocations, idleStates, held)
	}
	return nil
}

// fresh is a way to make a state.
type fresh struct {
	what      string
	libraries []*lua.Library
	script    string // run in it, unless empty
}

func (f fresh) make(s **lua.State) error {
	*s = lua.New(lua.Options{Seed: 1})
	if err := (*s).Open(f.libraries...); err != nil || f.script == "" {
		return err
	}
	chunk, err := (*s).Load(f.script, "=script")
	if err != nil {
		return err
	}
	_, err = (*s).Call(context.Background(), chunk.Value())
	return err
}

// cost is the cost of making one state, including garbage collection.
type cost struct {
	time               time.Duration
	bytes, allocations uint64
}

// measure makes many states, one after the other.
func (f fresh) measure() (cost, error) {
	const rounds = 50_000
	var s *lua.State
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := processorTime()
	for range rounds {
		if err := f.make(&s); err != nil {
			return cost{}, err
		}
	}
	spent := processorTime() - start
	runtime.ReadMemStats(&after)
	return cost{
		time: spent / rounds, bytes: (after.TotalAlloc - before.TotalAlloc) / rounds, allocations: (after.Mallocs - before.Mallocs) / rounds,
	}, nil
}

// processorTime is the CPU time of this process so far, user and system.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail with these arguments
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// hold returns the MiB that idle states hold on the heap.
func (f fresh) hold() (float64, error) {
	states := make([]*lua.State, idleStates)
	before := heap()
	for i := range states {
		if err := f.make(&states[i]); err != nil {
			return 0, err
		}
	}
	held := heap() - before
	runtime.KeepAlive(states)
	return float64(held) / (1 << 20), nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const (
	// budgetTurns is how often a program runs with and without budgets. The
	// difference is smaller than the noise of a busy machine, so it takes many
	// runs to have an undisturbed one of each.
	budgetTurns = 15
	// scriptMemory is the default memory limit of a script: programs that
	// allocate more pay for the walks that measure the live memory.
	scriptMemory = 128 << 20
)

// budgetCost returns the time a program takes with budgets on as a ratio to the
// time without. A process of its own measures it.
func budgetCost(ctx context.Context, program string) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, self, "-role", "budgets", program)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("measure budgets with %s: %w", program, err)
	}
	var cost float64
	_, err = fmt.Sscan(string(output), &cost)
	return cost, err
}

// measureBudgets runs a program alternately without and with budgets and writes the
// ratio of the best times. It uses one CPU: with more, the garbage collector also runs on
// idle CPUs, and that time, which varies by 10 % from run to run, would hide the
// difference.
func measureBudgets(w io.Writer, program string) error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(gcPercent)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var free, limited time.Duration
	for range budgetTurns {
		if err := best(context.Background(), &free, program, lua.Budget{}); err != nil {
			return err
		}
		limits := lua.Budget{Steps: 1 << 40, Memory: scriptMemory, Deadline: time.Now().Add(time.Hour)}
		if err := best(ctx, &limited, program, limits); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, float64(limited)/float64(free))
	return err
}

// best runs a program within limits and updates the shortest time.
func best(ctx context.Context, shortest *time.Duration, program string, limits lua.Budget) error {
	s, chunk, err := load(program, io.Discard)
	if err != nil {
		return err
	}
	s.SetBudget(limits)
	runtime.GC()
	start := processorTime()
	if _, err := s.Call(ctx, chunk.Value()); err != nil {
		return err
	}
	if took := processorTime() - start; *shortest == 0 || took < *shortest {
		*shortest = took
	}
	return nil
}
