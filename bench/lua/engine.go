package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The columns of a row.
const (
	reference = iota
	ours
	gopher
	columns
)

// engine is a command that runs the Lua program named by its last argument.
type engine struct {
	name    string
	command []string
}

// allEngines returns the engines in the order of the columns.
func allEngines(ctx context.Context) ([columns]engine, error) {
	var engines [columns]engine
	path, err := exec.LookPath("lua5.4")
	if err != nil {
		return engines, fmt.Errorf("find the reference (install the package lua5.4): %w", err)
	}
	version, err := exec.CommandContext(ctx, path, "-v").CombinedOutput()
	if err != nil {
		return engines, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	self, err := os.Executable()
	if err != nil {
		return engines, err
	}
	release, _, _ := strings.Cut(string(version), "  ")
	engines[reference] = engine{release, []string{path}}
	engines[ours] = engine{"ours", []string{self, "-role", "ours"}}
	engines[gopher] = engine{"gopher-lua", []string{self, "-role", "gopher"}}
	return engines, nil
}

// result is the result of running a program with an engine.
type result struct {
	best time.Duration // CPU time, user and system
	// failed says why there is no time, or nothing.
	failed string
}

// race runs a program turns times with each engine, one after the other. An output that
// differs from the reference's is an error for our engine and a failure for others.
func race(ctx context.Context, engines [columns]engine, program string, turns int) ([columns]result, error) {
	var row [columns]result
	var want []byte
	for range turns {
		for i, e := range engines {
			if row[i].failed != "" {
				continue
			}
			output, used, err := e.run(ctx, program)
			switch {
			case ctx.Err() != nil:
				return row, ctx.Err()
			case err != nil && i != gopher:
				return row, fmt.Errorf("run %s with %s: %w", program, e.name, err)
			case err != nil:
				row[i].failed = err.Error()
			case want == nil: // of the reference, which comes first
				want = output
			case !bytes.Equal(output, want) && i != gopher:
				return row, fmt.Errorf("%s prints %q with %s, not %q", program, output, e.name, want)
			case !bytes.Equal(output, want):
				row[i].failed = fmt.Sprintf("prints %q, not %q", output, want)
			}
			if row[i].best == 0 || used < row[i].best {
				row[i].best = used
			}
		}
	}
	return row, nil
}

// run returns the output of a program and its CPU time.
func (e engine) run(ctx context.Context, program string) ([]byte, time.Duration, error) {
	command := exec.CommandContext(ctx, e.command[0], append(e.command[1:len(e.command):len(e.command)], program)...)
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		if line, _, _ := strings.Cut(complaint.String(), "\n"); line != "" {
			return nil, 0, fmt.Errorf("%w: %s", err, line)
		}
		return nil, 0, err
	}
	spent := command.ProcessState
	return output.Bytes(), spent.UserTime() + spent.SystemTime(), nil
}
