package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/scripting/script"
)

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
