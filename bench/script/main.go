// Command script measures what a script costs: a run of an empty script with ten thousand
// tools bound, a call from Lua to a tool of the same process, and the memory of ten thousand
// scripts that wait for a slow tool at once. Rows that begin with "floor" are the same
// without our runner. Times are CPU time of the whole process including garbage collection,
// because the elapsed time depends on other load on the machine.
//
//	go run ./bench/script [-for 1s] [-tools 10000] [-waiting 10000]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/lua"
)

func main() {
	var (
		length  = flag.Duration("for", time.Second, "CPU time to measure each row")
		tools   = flag.Int("tools", 10_000, "number of tools")
		waiting = flag.Int("waiting", 10_000, "number of scripts that wait at once")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := report(ctx, *length, *tools, *waiting); err != nil {
		fmt.Fprintln(os.Stderr, "bench/script:", err)
		os.Exit(1)
	}
}

func report(ctx context.Context, length time.Duration, tools, waiting int) error {
	box := newToolbox(tools)
	all := newCatalog(ctx, box)
	few := newToolbox(2)
	bare, full := newRunner(few), newRunner(all)
	rows := append(starts(bare, full, tools), calls(few, all, bare, full)...)
	row("what", "CPU", "allocations", "bytes")
	row("---", "---", "---", "---")
	for _, r := range rows {
		spent, err := measure(ctx, length, r.run)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		times := float64(max(r.times, 1))
		row(r.name, micros(spent.cpu/times), fmt.Sprintf("%.0f", spent.objects/times), fmt.Sprintf("%.0f", spent.bytes/times))
	}
	return wait(ctx, full, box, waiting)
}

// subject is one row: what is measured, and how often one run does it.
type subject struct {
	name  string
	times int
	run   func(context.Context) error
}

// starts are runs of scripts, from the bare engine to a script that calls a tool.
func starts(bare, full *script.Runner, tools int) []subject {
	return []subject{
		{"floor: a Lua state with its own libraries runs `return 1`", 1, bareState},
		{"empty run, few tools to choose from", 1, runs(bare, "return 1")},
		{fmt.Sprintf("empty run, %d tools bound", tools), 1, runs(full, "return 1")},
		{"the same with a source that is not compiled yet", 1, runsAnew(full, "return 1")},
		{"run that prints, maps a list and calls one tool", 1, runs(full, `print(map({1, 2}, tostring)) return mcp.calc.double{n = 1}`)},
		{"run that reads every global", 1, runs(full, `local names = 0 for name in pairs(_G) do names = names + 1 end return names`)},
	}
}

// calls are rows about one call of a tool.
func calls(box *toolbox, all tool.Source, bare, full *script.Runner) []subject {
	const loop = `for i = 1, 1000 do mcp.calc.double{n = i} end`
	made := tool.Call{Ref: tool.Ref{Space: "calc", Name: "double"}, Args: []byte(`{"n":1}`)}
	called := func(source tool.Source) func(context.Context) error {
		return func(ctx context.Context) error {
			for range 1000 {
				if _, err := source.Call(ctx, made); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return []subject{
		{"floor: tool called from Go", 1000, called(box)},
		{"floor: tool called from Go through the catalog", 1000, called(all)},
		{"tool called from Lua", 1000, runs(bare, loop)},
		{"tool called from Lua through the catalog", 1000, runs(full, loop)},
	}
}

func bareState(ctx context.Context) error {
	state := lua.New(lua.Options{Seed: 1})
	if err := state.Open(lua.Base, lua.CoroutineLib, lua.TableLib, lua.StringLib, lua.MathLib, lua.UTF8Lib); err != nil {
		return err
	}
	chunk, err := state.Load("return 1", "=script")
	if err != nil {
		return err
	}
	_, err = state.Call(ctx, chunk.Value())
	return err
}

func runs(runner *script.Runner, source string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := runner.Run(ctx, script.Request{Source: source})
		return err
	}
}

// runsAnew gives each run a source of its own, so that each is compiled.
func runsAnew(runner *script.Runner, source string) func(context.Context) error {
	count := 0
	return func(ctx context.Context) error {
		count++
		return runs(runner, fmt.Sprintf("%s -- %d", source, count))(ctx)
	}
}

func row(cells ...string) {
	fmt.Println("| " + strings.Join(cells, " | ") + " |")
}

func micros(nanoseconds float64) string { return fmt.Sprintf("%.1f µs", nanoseconds/1e3) }
