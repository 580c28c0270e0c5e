// Command testrun runs `go test` and shows how far it is:
//
//	testrun [-limit 5m] [-race "PACKAGES"] [-also COMMAND] [-then COMMAND] -- [FLAGS OF GO TEST] PACKAGES
//
// It prints a line for each package, what is running when nothing ended for a while, and at
// the end what failed and how to run that alone. A test that runs longer than the limit
// hangs: its process is made to print the stacks of all goroutines and to end.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	limit := flag.Duration("limit", 5*time.Minute, "how long one test may run")
	race := flag.String("race", "", "packages that run under the race detector, the others without it")
	also := flag.String("also", "", "a command of the shell that runs at the same time, because tests also wait")
	then := flag.String("then", "", "a command of the shell that runs after the tests, whether they fail or not")
	flag.Parse()
	r := newReport(os.Stdout, *limit)
	if err := run(r, strings.Fields(*race), *also, *then, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// run runs the tests and the other commands, and returns an error when one of them failed.
func run(r *report, race []string, also, then string, args []string) error {
	split := len(args)
	for split > 0 && !strings.HasPrefix(args[split-1], "-") {
		split--
	}
	flags, patterns := args[:split], args[split:]
	raced, err := list(race)
	if err != nil {
		return err
	}
	plain, err := list(patterns)
	if err != nil {
		return err
	}
	plain = slices.DeleteFunc(plain, func(name string) bool { return slices.Contains(raced, name) })
	r.expect(len(plain) + len(raced))
	var other sync.WaitGroup
	var failed error
	if also != "" {
		other.Go(func() { failed = r.pass(also) })
	}
	problem := goTest(r, nil, flags, plain)
	if len(raced) > 0 {
		// SQLite is C, translated to Go: to watch its memory, too, takes four times as long.
		problem = errors.Join(problem, goTest(r, []string{"CGO_ENABLED=1"}, append([]string{"-race", "-gcflags=modernc.org/...=-race=false"}, flags...), raced))
	}
	other.Wait()
	if then != "" {
		failed = errors.Join(failed, r.pass(then))
	}
	return errors.Join(problem, failed, r.summary())
}

// list returns the packages that patterns name.
func list(patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	cmd := exec.Command("go", append([]string{"list"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// goTest runs `go test` on packages. What fails is in the report; an error means that it
// could not run.
func goTest(r *report, env, flags, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, flags, packages)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := r.watch(cmd.Process.Pid)
	defer stop()
	err = r.read(out)
	var exit *exec.ExitError
	if ended := cmd.Wait(); !errors.As(ended, &exit) || !r.anyFailed() {
		err = errors.Join(err, ended)
	}
	return err
}

// pass runs a command and prints its lines among ours.
func (r *report) pass(command string) error {
	cmd := exec.Command("sh", "-c", command)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.print("%s", lines.Text())
		}
	}()
	err := cmd.Run()
	_ = in.Close()
	<-done
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

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
			p.hangs = true
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
