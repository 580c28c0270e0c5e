// Command testrun runs `go test` and shows how far it is:
//
//	testrun [-limit 5m] [-race "PACKAGES"] [-also COMMAND] -- [FLAGS OF GO TEST] PACKAGES
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
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	limit := flag.Duration("limit", 5*time.Minute, "how long one test may run")
	race := flag.String("race", "", "packages that run under the race detector, the others without it")
	also := flag.String("also", "", "a command of the shell that runs at the same time, because tests also wait")
	flag.Parse()
	r := newReport(os.Stdout, *limit)
	if err := run(r, strings.Fields(*race), *also, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// run runs the tests and the other command, and returns an error when one of them failed.
func run(r *report, race []string, also string, args []string) error {
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
