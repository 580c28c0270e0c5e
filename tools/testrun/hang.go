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

// childrensTime is how long the programs that a test has started may print their stacks.
const childrensTime = 5 * time.Second

// quit makes the process that tests a package print its stacks and end, after the programs
// that it has started. A test runs in the folder of its package. Where there is no /proc, the
// limit of `go test` ends it.
func quit(goTest int, folder string) {
	for _, binary := range children(goTest) {
		if at, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", binary)); !strings.HasSuffix(at, "/"+folder) {
			continue
		}
		for _, program := range children(binary) {
			_ = syscall.Kill(program, syscall.SIGQUIT)
		}
		time.AfterFunc(childrensTime, func() { _ = syscall.Kill(binary, syscall.SIGQUIT) })
	}
}

// children returns the processes that a process has started.
func children(parent int) (list []int) {
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range processes {
		text, _ := os.ReadFile(stat)
		_, fields, _ := strings.Cut(string(text), ") ")
		if parts := strings.Fields(fields); len(parts) > 1 && parts[1] == strconv.Itoa(parent) {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			list = append(list, id)
		}
	}
	return list
}
