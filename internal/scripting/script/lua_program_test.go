package script

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestProgramsAreCompiledOnce(t *testing.T) {
	t.Parallel()
	var p programs
	compiled := 0
	get := func(source string) {
		_, err := p.get(programKey{source: source}, func() (program, error) { compiled++; return program{}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	get("a")
	get("a")
	if compiled != 1 {
		t.Errorf("compiled %d times, want once", compiled)
	}
	filler := strings.Repeat("x", generation/100)
	for i := range 20 { // a is used repeatedly, so it stays in the cache
		get(filler[i:])
		get("a")
	}
	if compiled != 21 {
		t.Errorf("compiled %d times, want a once and the others once each", compiled)
	}
	if get(filler); compiled != 22 {
		t.Error("an unused program is still cached")
	}
	large := strings.Repeat("x", generation)
	get(large)
	get(large)
	if compiled != 24 || p.weight > generation {
		t.Errorf("compiled %d times, %d bytes cached", compiled, p.weight)
	}
}

func TestProgramsForgetFailures(t *testing.T) {
	t.Parallel()
	var p programs
	for range 2 {
		_, err := p.get(programKey{source: "a"}, func() (program, error) { return program{}, errors.New("no") })
		if err == nil {
			t.Error("a source that does not compile was cached")
		}
	}
}

// TestSourceRunsRepeatedly checks that a source has the same meaning under every name
// and in both ways to run it, however often it ran before, and in many states at once.
func TestSourceRunsRepeatedly(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	source := "count = (count or 0) + 1\nlocal function main() return count end\nif fail then error('no') end\nreturn count, print and 1"
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				outcome, err := r.Run(t.Context(), Request{Source: source})
				if err != nil || string(outcome.Result) != "[1,1]" {
					t.Errorf("result %s, %v", outcome.Result, err)
				}
				_, err = r.Run(t.Context(), Request{Source: source, Main: true})
				var failed *Error
				if !errors.As(err, &failed) || failed.Kind != MissingMain {
					t.Errorf("with main: %v", err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range []string{"one.lua", "two.lua"} {
		_, err := r.Run(t.Context(), Request{Source: "error('no')", Name: name})
		if err == nil || !strings.Contains(err.Error(), name+":1: no") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
