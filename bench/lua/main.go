// Command lua compares our Lua engine with the reference implementation, lua5.4, and with
// gopher-lua, on the programs of lua/bench. All engines run each program as a process of
// its own, alternately; the CPU time of the best turn counts. It also measures what budgets
// cost and how much memory a new state takes.
//
//	cd bench/lua && go run . [-turns 3] [-programs ../../lua/bench] [NAME…]
//
// If the output of a program differs from that of lua5.4, it exits with status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var (
		role     = flag.String("role", "", "engine to run; used by the program itself")
		turns    = flag.Int("turns", 3, "how often each engine runs each program")
		programs = flag.String("programs", "../../lua/bench", "the folder of Lua programs")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *role {
	case "":
		err = compare(ctx, *programs, *turns, flag.Args())
	case "states":
		err = measureStates(os.Stdout)
	case "budgets":
		err = measureBudgets(os.Stdout, flag.Arg(0))
	default:
		err = play(*role, flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/lua:", err)
		os.Exit(1)
	}
}

// compare prints the table of the named programs, or of all.
func compare(ctx context.Context, folder string, turns int, names []string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.lua"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no programs in %s: %w", folder, os.ErrNotExist)
	}
	engines, err := allEngines(ctx)
	if err != nil {
		return err
	}
	t := table{turns: turns}
	t.head(engines)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".lua")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		row, err := race(ctx, engines, path, turns)
		if err != nil {
			return err
		}
		cost, err := budgetCost(ctx, path)
		if err != nil {
			return err
		}
		t.add(name, row, cost)
	}
	t.foot()
	return printStates(ctx)
}
