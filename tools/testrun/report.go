package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// module precedes the names of our packages.
const module = "github.com/luanette/luanette/"

// shownLines is how much output of a failed test is printed: stacks can be long.
const shownLines = 3000

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// report collects what tests did.
type report struct {
	out   io.Writer
	limit time.Duration
	began time.Time

	mu              sync.Mutex
	total, ended    int
	passed, skipped int
	running         map[string]*pack // by package
	failed          []failure
	skips           map[string]int // by reason
	printed         time.Time
}

// pack is a package whose tests run.
type pack struct {
	began  time.Time
	tests  map[string]*test
	output []string // of the package itself, and of a process that prints its stacks
	failed bool
	hangs  bool // its process prints its stacks
}

// test is a test that has begun and not ended.
type test struct {
	since  time.Time // when it last began or went on; zero while it waits for its turn, and once it is over
	output []string
}

// failure is a test that failed, or a package if the test is unknown.
type failure struct {
	pack, test string
	output     []string
}

func newReport(out io.Writer, limit time.Duration) *report {
	return &report{out: out, limit: limit, began: time.Now(), running: map[string]*pack{}, skips: map[string]int{}}
}

func (r *report) expect(packages int) {
	r.total = packages
	r.print("%d packages; those that were not built yet are compiled first", packages)
}

// print prints a line.
func (r *report) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(format, args...)
}

func (r *report) line(format string, args ...any) {
	r.printed = time.Now()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// read takes in the events of a run.
func (r *report) read(out io.Reader) error {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			r.add(&e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e *event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := e.Package
	if name == "" { // output of the compiler; a variant of a package has the test's package behind it
		name, _, _ = strings.Cut(e.ImportPath, " ")
	}
	p := r.running[name]
	if p == nil {
		p = &pack{began: time.Now(), tests: map[string]*test{}}
		r.running[name] = p
	}
	if e.Test == "" {
		r.addPackage(p, name, e)
	} else {
		r.addTest(p, name, e)
	}
}

func (r *report) addPackage(p *pack, name string, e *event) {
	switch e.Action {
	case "output", "build-output":
		p.output = append(p.output, e.Output)
	case "pass", "skip":
		r.end(name, "ok", e.Elapsed)
	case "fail":
		if !p.failed {
			f := failure{pack: name, output: p.output}
			for _, of := range slices.Sorted(maps.Keys(p.tests)) { // whose end was not reported: the process died
				f.output = append(f.output, p.tests[of].output...)
			}
			r.failed = append(r.failed, f)
		}
		r.end(name, "FAIL", e.Elapsed)
	}
}

// end reports the end of a package.
func (r *report) end(name, how string, took float64) {
	delete(r.running, name)
	r.ended++
	r.line("[%*d/%d] %6.1f s  %-4s  %s", len(fmt.Sprint(r.total)), r.ended, r.total, took, how, strings.TrimPrefix(name, module))
}

func (r *report) addTest(p *pack, name string, e *event) {
	if p.hangs && e.Action == "output" { // the stacks look like output of the test that printed last
		p.output = append(p.output, e.Output)
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &test{}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "run", "cont":
		t.since = time.Now()
	case "pause":
		t.since = time.Time{}
	case "output":
		t.output = append(t.output, e.Output)
		if strings.HasPrefix(strings.TrimLeft(e.Output, " "), "--- ") { // its end is reported with the next line of the package
			t.since = time.Time{}
		}
	case "pass":
		r.passed++
		p.end(e.Test)
	case "skip":
		r.skipped++
		r.skips[reason(t.output)]++
		p.end(e.Test)
	case "fail":
		if f := len(r.failed); f == 0 || r.failed[f-1].pack != name || !strings.HasPrefix(r.failed[f-1].test, e.Test+"/") { // its subtest has said it
			r.failed = append(r.failed, failure{name, e.Test, t.output})
			r.line("         FAIL  %s %s", strings.TrimPrefix(name, module), e.Test)
		}
		p.failed = true
		p.end(e.Test)
	}
}

// end forgets a test that has ended. The tests that waited for it go on from now: what all
// their subtests took together says nothing about them.
func (p *pack) end(name string) {
	delete(p.tests, name)
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if parent := p.tests[name[:i]]; parent != nil {
			parent.since = time.Now()
		}
	}
}

// reason returns why a test was skipped: the line before the one that says so.
func reason(output []string) string {
	for _, line := range output {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			_, text, _ = strings.Cut(text, ": ") // file and line
			return text
		}
	}
	return "for no stated reason"
}

func (r *report) anyFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed) > 0
}

// summary prints what failed, and returns an error if anything did.
func (r *report) summary() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for reason, count := range r.skips {
		r.line("skipped %d: %s", count, reason)
	}
	for _, f := range r.failed {
		name := "./" + strings.TrimPrefix(f.pack, module)
		r.line("\nFAIL %s %s", name, f.test)
		for _, line := range f.output[:min(len(f.output), shownLines)] {
			fmt.Fprint(r.out, "    ", line)
		}
		r.line("  alone: make test ARGS='-count=1 %s'", strings.TrimSpace(name+" "+runFlag(f.test)))
	}
	r.line("\nGo tests, after %s:", time.Since(r.began).Round(time.Second))
	r.line("%d passed, %d failed, %d skipped", r.passed, len(r.failed), r.skipped)
	if len(r.failed) > 0 {
		return errors.New("tests failed")
	}
	return nil
}

// runFlag selects a test. It has no $, which make would take for a variable.
func runFlag(name string) string {
	if name == "" {
		return ""
	}
	return `-run="` + name + `"`
}
