package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// quiet is after how long without a line the tests that run are named.
const quiet = 20 * time.Second

// watch names what runs when nothing else is printed, and ends tests that hang, until stop
// is called. The tests are grandchildren of the process with that id.
func (r *report) watch(goTest int) (stop func()) {
	tick, done := time.NewTicker(time.Second), make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick.C:
				r.look(goTest)
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done); <-ended }
}

func (r *report) look(goTest int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, p := range r.running {
		longest, took := p.longest()
		if longest != "" && took > r.limit {
			r.line("         HANGS  %s %s, for %s", strings.TrimPrefix(name, module), longest, took.Round(time.Second))
			p.output = append(p.output, fmt.Sprintf("%s ran for more than %s: the stacks of its process follow\n", longest, r.limit))
			quit(goTest, strings.TrimPrefix(name, module))
			delete(p.tests, longest)
		}
		if longest != "" {
			names = append(names, fmt.Sprintf("%s %s (%s)", strings.TrimPrefix(name, module), longest, took.Round(time.Second)))
		}
	}
	if time.Since(r.printed) > quiet && len(names) > 0 {
		r.line("         runs: %s", strings.Join(names, ", "))
	}
}

// longest returns the test that runs for the longest time. A test with subtests waits for
// them.
func (p *pack) longest() (name string, took time.Duration) {
	for of, t := range p.tests {
		if t.since.IsZero() || p.hasSubtests(of) {
			continue
		}
		if d := time.Since(t.since); d > took {
			name, took = of, d
		}
	}
	return name, took
}

func (p *pack) hasSubtests(name string) bool {
	for other := range p.tests {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// quit makes the process that tests a package print its stacks and end. A test runs in the
// folder of its package. Where there is no /proc, the limit of `go test` ends it.
func quit(goTest int, folder string) {
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range processes {
		text, _ := os.ReadFile(stat)
		_, fields, _ := strings.Cut(string(text), ") ")
		parts := strings.Fields(fields)
		if len(parts) < 2 || parts[1] != strconv.Itoa(goTest) {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if at, _ := os.Readlink(filepath.Join(filepath.Dir(stat), "cwd")); strings.HasSuffix(at, "/"+folder) {
			_ = syscall.Kill(id, syscall.SIGQUIT)
		}
	}
}
