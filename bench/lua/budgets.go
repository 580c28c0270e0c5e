package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/luanette/luanette/lua"
)

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
