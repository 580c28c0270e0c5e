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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/catalog"
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

// spent is what one run takes.
type spent struct {
	cpu            float64 // nanoseconds
	objects, bytes float64
}

// measure runs a subject for that CPU time in rounds and returns the average of the
// cheapest round, since other load on the machine only adds to the time.
func measure(ctx context.Context, length time.Duration, run func(context.Context) error) (spent, error) {
	const rounds = 5
	var best spent
	for i := range rounds {
		s, err := average(ctx, length/rounds, run)
		if err != nil {
			return spent{}, err
		}
		if i == 0 || s.cpu < best.cpu {
			best = s
		}
	}
	return best, nil
}

func average(ctx context.Context, length time.Duration, run func(context.Context) error) (spent, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, count := proc.Self(), 0
	for proc.Self()-start < length {
		for range 10 {
			if err := errors.Join(run(ctx), ctx.Err()); err != nil {
				return spent{}, err
			}
			count++
		}
	}
	took := proc.Self() - start
	runtime.ReadMemStats(&after)
	each := func(total uint64) float64 { return float64(total) / float64(count) }
	return spent{
		cpu:     float64(took) / float64(count),
		objects: each(after.Mallocs - before.Mallocs),
		bytes:   each(after.TotalAlloc - before.TotalAlloc),
	}, nil
}

// wait prints the memory of many scripts that wait for a slow tool at once.
func wait(ctx context.Context, runner *script.Runner, box *toolbox, count int) error {
	before := measureMemory()
	errs := make([]error, count)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() { errs[i] = runs(runner, "return mcp.slow.wait{}")(ctx) })
	}
	for range count {
		select {
		case <-box.arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	grown := resident()
	after := measureMemory()
	close(box.released)
	all.Wait()
	fmt.Printf("\n%d scripts wait at once: heap %d MiB, stacks %d MiB, resident %d MiB (%d MiB before them); %.1f KiB each\n",
		count, mebi(after.heap-before.heap), mebi(after.stacks-before.stacks), mebi(grown), mebi(before.resident),
		float64(after.heap-before.heap+after.stacks-before.stacks)/float64(count)/1024)
	return errors.Join(errs...)
}

// memory is the memory of the process, without garbage.
type memory struct{ heap, stacks, resident uint64 }

func measureMemory() memory {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{m.HeapAlloc, m.StackInuse, resident()}
}

// resident is the resident memory of the process, or 0 where that is unknown.
func resident() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	line, _, _ := strings.Cut(rest, "kB")
	kilobytes, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

func mebi(bytes uint64) uint64 { return bytes >> 20 }

// toolbox is a source with many tools: calc.double, which answers at once, slow.wait, which
// answers when released is closed, and tools that are never called and come before them
// in the list.
type toolbox struct {
	infos    []tool.Info
	answer   tool.Result
	arrived  chan struct{} // a token for each call that waits
	released chan struct{} // closed to end the calls that wait
}

func newToolbox(count int) *toolbox {
	object := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	add := func(infos []tool.Info, space, name string) []tool.Info {
		return append(infos, tool.Info{Ref: tool.Ref{Space: space, Name: name}, Description: "does " + name, Input: object})
	}
	infos := add(add(nil, "calc", "double"), "slow", "wait")
	for i := range count - len(infos) {
		infos = add(infos, fmt.Sprintf("area%03d", i/100), fmt.Sprintf("tool%02d", i%100))
	}
	slices.SortFunc(infos, func(x, y tool.Info) int { return strings.Compare(x.String(), y.String()) })
	return &toolbox{
		infos:    infos,
		answer:   tool.Result{Raw: []byte(`{"content":[{"type":"text","text":"{\"n\":2}"}],"structuredContent":{"n":2}}`)},
		arrived:  make(chan struct{}),
		released: make(chan struct{}),
	}
}

func (b *toolbox) Tools(context.Context) ([]tool.Info, error) { return b.infos, nil }

func (b *toolbox) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if call.Ref.Space != "slow" {
		return b.answer, nil
	}
	b.arrived <- struct{}{}
	select {
	case <-b.released:
		return b.answer, nil
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

// newCatalog returns a catalog of the tools without limits.
func newCatalog(ctx context.Context, box *toolbox) *catalog.Catalog {
	c := catalog.New(catalog.Options{
		Sources: []tool.Source{box},
		Bus:     event.New(event.BusOptions{}),
		Limits:  func(string) catalog.Limits { return catalog.Limits{Concurrent: -1} },
	})
	c.Refresh(ctx)
	return c
}

func newRunner(tools tool.Source) *script.Runner {
	return script.NewRunner(script.Options{
		Tools:  tools,
		Events: event.New(event.BusOptions{}),
		Log:    slog.New(slog.DiscardHandler),
		Tracer: tracenoop.NewTracerProvider().Tracer(""),
		Meter:  metricnoop.NewMeterProvider().Meter(""),
		Clock:  clock.Real(),
		Limits: script.Limits{Calls: 1 << 40, Time: 1 << 40},
	})
}
