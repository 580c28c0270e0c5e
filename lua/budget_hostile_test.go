package lua

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// The budget of a hostile script.
const (
	hostileSteps  = 400_000
	hostileMemory = 32 << 20
	// hostileSlack is what the process may use beyond the script's limit.
	hostileSlack = 64 << 20
)

// swallow runs a script so that no error would escape if errors could be
// caught.
const swallow = `
local script = ...
local function quietly()
  for i = 1, 3 do
    pcall(script)
    xpcall(script, function() return "handled" end)
    coroutine.resume(coroutine.create(script))
    pcall(coroutine.wrap(script))
  end
end
local guard <close> = setmetatable({}, {__close = function() leaked = true end})
repeat pcall(quietly) until false
`

// TestHostileScripts runs every script of testdata/hostile: a budget must stop
// it, nothing the script does may catch that, memory must stay bounded, and
// the process must be able to run the next script. It is not parallel because it
// measures the memory of the process.
func TestHostileScripts(t *testing.T) {
	for name, source := range hostileScripts(t) {
		t.Run(name, func(t *testing.T) {
			peak := watchHeap(t)
			s := hostileState(t, Budget{Steps: hostileSteps, Memory: hostileMemory, Deadline: time.Now().Add(time.Minute)})
			_, err := run(s, source, "="+name)
			expectBudgetError(t, err)
			if got := peak(); got > hostileMemory+hostileSlack {
				t.Errorf("the heap grew by %d MiB", got>>20)
			}
			checkNextScript(t)
		})
	}
}

// TestHostileScriptsCannotCatchTheEnd runs the scripts under everything that
// catches errors.
func TestHostileScriptsCannotCatchTheEnd(t *testing.T) {
	t.Parallel()
	for name, source := range hostileScripts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hostileState(t, Budget{Steps: hostileSteps, Memory: hostileMemory, Deadline: time.Now().Add(time.Minute)})
			script, err := s.Load(source, "="+name)
			if err != nil {
				t.Fatal(err)
			}
			wrapper, err := s.Load(swallow, "=swallow")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Call(context.Background(), wrapper.Value(), script.Value())
			expectBudgetError(t, err)
			if s.Globals().GetString("leaked").Truthy() {
				t.Error("a close handler ran after the budget was over")
			}
		})
	}
}

// TestDeadlineAndContextStopScripts checks limits of time, which counting steps does
// not enforce.
func TestDeadlineAndContextStopScripts(t *testing.T) {
	t.Parallel()
	for name, source := range hostileScripts(t) {
		if !strings.HasPrefix(name, "loop_") && !strings.HasPrefix(name, "pattern_") && !strings.HasPrefix(name, "sort_") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hostileState(t, Budget{Memory: hostileMemory, Deadline: time.Now().Add(20 * time.Millisecond)})
			_, err := run(s, source, "="+name)
			expectBudgetError(t, err)

			s = hostileState(t, Budget{Memory: hostileMemory})
			fn, err := s.Load(source, "="+name)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_, err = s.Call(ctx, fn.Value())
			expectBudgetError(t, err)
			var budget *BudgetError
			if errors.As(err, &budget) && budget.Limit == LimitContext && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error does not carry the cause: %v", err)
			}
		})
	}
}

func hostileScripts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/hostile/*.lua")
	if err != nil || len(paths) < 45 {
		t.Fatalf("%d hostile scripts: %v", len(paths), err)
	}
	scripts := make(map[string]string, len(paths))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		scripts[strings.TrimSuffix(filepath.Base(path), ".lua")] = string(source)
	}
	return scripts
}

// hostileState has every library that cannot reach outside.
func hostileState(t *testing.T, budget Budget) *State {
	t.Helper()
	s := New(Options{Stdout: io.Discard, Seed: 1})
	if err := s.Open(All()...); err != nil {
		t.Fatal(err)
	}
	s.SetBudget(budget)
	return s
}

func expectBudgetError(t *testing.T, err error) {
	t.Helper()
	var budget *BudgetError
	if !errors.As(err, &budget) {
		t.Errorf("ended with %v (%T), not with a budget error", err, err)
	}
}

// checkNextScript runs an ordinary script in a fresh state.
func checkNextScript(t *testing.T) {
	t.Helper()
	s := hostileState(t, Budget{Steps: hostileSteps, Memory: hostileMemory})
	results, err := run(s, `local t = {} for i = 1, 100 do t[i] = tostring(i) end return #table.concat(t, ",")`, "=next")
	if err != nil || len(results) != 1 || results[0] != Int(291) {
		t.Errorf("the next script gives %v, %v", results, err)
	}
}

// watchHeap samples the bytes of heap objects until the function it returns
// is called, which gives the highest growth seen.
func watchHeap(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := read()
	highest := before
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			highest = max(highest, read())
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return func() uint64 {
		close(stop)
		watching.Wait()
		return highest - before
	}
}
