package script

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/scripting/memory"
)

// Scripts that together need more memory than all may hold end one after the other, with
// their results.
func TestRunsShareTheirMemory(t *testing.T) {
	t.Parallel()
	for language, source := range map[string]string{
		Lua:        `local t = {} for i = 1, 20 do t[i] = string.rep("x", 1048576) end return #t`,
		JavaScript: `const a = []; for (let i = 0; i < 20; i++) a.push(new Uint8Array(1048576).fill(1)); return a.length`,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			pool := memory.NewPool(memory.Options{Total: 64 << 20, Reserve: 32 << 20})
			r := newRunner(t, func(o *Options) { o.Memory, o.Limits.Memory = pool, 32<<20 })
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					outcome, err := r.Run(t.Context(), Request{Source: source, Language: language})
					if err != nil || string(outcome.Result) != "20" {
						t.Errorf("result %s, %v", outcome.Result, err)
					}
					if held := pool.Held(); held > 64<<20 {
						t.Errorf("all together hold %d bytes", held)
					}
				})
			}
			wg.Wait()
			if held := pool.Held(); held != 0 {
				t.Errorf("%d bytes are still counted", held)
			}
		})
	}
}

// A script that needs more than all may hold together is refused; the next one runs.
func TestMemoryOfAllIsRefused(t *testing.T) {
	t.Parallel()
	for language, source := range map[string]string{
		Lua:        `local t = {} for i = 1, 20 do t[i] = string.rep("x", 1048576) end return #t`,
		JavaScript: `const a = []; for (let i = 0; i < 20; i++) a.push(new Uint8Array(1048576).fill(1)); return a.length`,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			pool := memory.NewPool(memory.Options{Total: 8 << 20, NoWait: true})
			r := newRunner(t, func(o *Options) { o.Memory = pool })
			_, err := r.Run(t.Context(), Request{Source: source, Language: language})
			if err == nil || !strings.Contains(fmt.Sprint(err), "all scripts together hold the 8 MiB") {
				t.Errorf("error %v", err)
			}
			if _, err := r.Run(t.Context(), Request{Source: "return 1", Language: language}); err != nil {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// What a script holds while it waits for a tool is what it needs, not the garbage it made.
func TestGarbageIsNotHeld(t *testing.T) {
	t.Parallel()
	pool := memory.NewPool(memory.Options{Total: 64 << 20, Reserve: 32 << 20})
	r := newRunner(t, func(o *Options) { o.Memory = pool })
	outcome, err := r.Run(t.Context(), Request{Source: `for i = 1, 400 do local s = string.rep("x", 1048576) end return 1`, Limits: Limits{Time: time.Hour}})
	if err != nil || string(outcome.Result) != "1" {
		t.Errorf("400 MB of garbage in 64 MiB: %s, %v", outcome.Result, err)
	}
}

// The time that a run waits for memory is not part of its own.
func TestWaitingForMemoryTakesNoTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := memory.NewPool(memory.Options{Total: 64 << 20, Reserve: 32 << 20})
		take := func(n int64) *memory.Share {
			s, ctx := pool.Open(t.Context(), "other", time.Minute)
			if err := s.Take(ctx, n, true); err != nil {
				t.Error(err)
			}
			return s
		}
		large := take(32 << 20)
		small := take(1 << 20) // has the reserve
		large.Give(4 << 20)
		time.AfterFunc(90*time.Second, func() { large.Close(); small.Close() })
		r := newRunner(t, func(o *Options) { o.Memory, o.JavaScript = pool, nil })
		outcome, err := r.Run(t.Context(), Request{Source: `return #string.rep("x", 8 * 1048576)`, Limits: Limits{Time: time.Minute}})
		if err != nil || string(outcome.Result) != "8388608" {
			t.Errorf("%s, %v", outcome.Result, err)
		}
		if waited := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); waited != 90*time.Second {
			t.Errorf("it waited %s", waited)
		}
	})
}

// A script that cannot even be compiled, because others hold all memory, has no syntax
// error.
func TestNoMemoryToCompile(t *testing.T) {
	t.Parallel()
	pool := memory.NewPool(memory.Options{Total: 64 << 10, NoWait: true})
	r := newRunner(t, func(o *Options) { o.Memory = pool })
	_, err := r.Run(t.Context(), Request{Source: "local s = 0 " + strings.Repeat("s = s + 1.5 ", 10000) + " return s"})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind == SyntaxError || !strings.Contains(failure.Message, "all scripts together hold") {
		t.Errorf("%+v", err)
	}
}
