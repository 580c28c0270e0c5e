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
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	gopherlua "github.com/yuin/gopher-lua"

	"github.com/luanette/luanette/lua"
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

// gcPercent is what `luanette lua` sets for its own process. Both engines
// written in Go get it.
const gcPercent = 400

// play runs a Lua program with the engine of a role.
func play(role, program string) error {
	debug.SetGCPercent(gcPercent)
	switch role {
	case "ours":
		return playOurs(program)
	case "gopher":
		return playGopher(program)
	}
	return fmt.Errorf("no role %q", role)
}

func playOurs(program string) error {
	out := bufio.NewWriter(os.Stdout)
	s, chunk, err := load(program, out)
	if err != nil {
		return err
	}
	_, err = s.Call(context.Background(), chunk.Value())
	return errors.Join(err, out.Flush())
}

// load returns a program ready to be called in a state of its own.
func load(program string, out io.Writer) (*lua.State, *lua.Function, error) {
	source, err := os.ReadFile(program)
	if err != nil {
		return nil, nil, err
	}
	s := lua.New(lua.Options{Stdout: out})
	if err := s.Open(lua.All()...); err != nil {
		return nil, nil, err
	}
	chunk, err := s.Load(string(source), "@"+program)
	return s, chunk, err
}

func playGopher(program string) error {
	s := gopherlua.NewState()
	defer s.Close()
	return s.DoFile(program)
}

// table prints rows and collects the ratios for the means.
type table struct {
	turns    int
	toRef    []float64 // ours to the reference
	toGopher []float64 // gopher-lua to ours
	budgets  []float64 // with budgets to without
	notes    []string
}

const rowFormat = "| %-10s | %8s | %8s | %6s | %7s | %10s | %11s |\n"

func (t *table) head(engines [columns]engine) {
	fmt.Printf("Milliseconds of CPU time, user and system, best of %d turns; the reference is %s.\n\n", t.turns, engines[reference].name)
	fmt.Printf(rowFormat, "program", "lua5.4", "ours", "ratio", "budgets", "gopher-lua", "gopher/ours")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|")
}

func (t *table) add(name string, row [columns]result, cost float64) {
	slowdown := ratio(row[ours], row[reference])
	t.toRef, t.budgets = append(t.toRef, slowdown), append(t.budgets, cost)
	slow, factor := "–", "–"
	if failed := row[gopher].failed; failed != "" {
		t.notes = append(t.notes, fmt.Sprintf("gopher-lua, which is Lua 5.1, left out of %s: %s", name, failed))
	} else {
		f := ratio(row[gopher], row[ours])
		t.toGopher = append(t.toGopher, f)
		slow, factor = milliseconds(row[gopher]), fmt.Sprintf("%.2f", f)
	}
	fmt.Printf(rowFormat, name, milliseconds(row[reference]), milliseconds(row[ours]), fmt.Sprintf("%.2f", slowdown),
		percent(cost), slow, factor)
}

// foot prints the geometric means and why numbers are missing.
func (t *table) foot() {
	fmt.Printf(rowFormat, "mean", "", "", fmt.Sprintf("%.2f", mean(t.toRef)), percent(mean(t.budgets)), "",
		fmt.Sprintf("%.2f", mean(t.toGopher)))
	fmt.Println()
	for _, note := range t.notes {
		fmt.Println(note)
	}
}

func ratio(a, b result) float64 { return float64(a.best) / float64(b.best) }

func milliseconds(r result) string { return fmt.Sprint(r.best.Round(time.Millisecond).Milliseconds()) }

// percent is the difference of a ratio from 1, in percent.
func percent(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

// mean is the geometric mean.
func mean(ratios []float64) float64 {
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios)))
}
