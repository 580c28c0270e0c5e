// Command fitness measures every function: its lines of code, its cyclomatic
// complexity, its nesting depth and its number of parameters. It exits with 1 and
// lists the functions that exceed a limit. Run it from the module's root:
// `go run ./tools/fitness`. docs/decisions/007 explains how it counts.
package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

func main() {
	files, err := sources()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fitness:", err)
		os.Exit(2)
	}
	os.Exit(report(os.Stdout, files))
}

// sources lists the Go files to measure: all but tests, packages of test helpers
// and testdata.
func sources() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for line := range bytes.Lines(out) {
		file := strings.TrimSpace(string(line))
		if !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(path.Dir(file), "test") && !strings.Contains(file, "testdata/") {
			files = append(files, file)
		}
	}
	return files, nil
}

// exceptions are the functions that may exceed the limits, as FILE:FUNCTION, with
// the reason.
var exceptions = map[string]string{
	"lua/vm_exec.go:exec": "the interpreter loop: a call per instruction would cost more than the instruction",
}

// report measures the files and lists the functions that exceed a limit. It
// returns the exit code.
func report(w io.Writer, files []string) int {
	count, failed := 0, 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) { // deleted, but the deletion is not committed
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments)
		if err != nil {
			fmt.Fprintln(w, err)
			failed++
			continue
		}
		for _, f := range measure(fset, parsed, source) {
			count++
			if excess := f.excess(); len(excess) > 0 && exceptions[file+":"+f.name] == "" {
				fmt.Fprintf(w, "%s: %s %s\n", f.at, f.name, strings.Join(excess, ", "))
				failed++
			}
		}
	}
	if failed > 0 {
		fmt.Fprintf(w, "\n%d of %d functions exceed the limits\n", failed, count)
		return 1
	}
	fmt.Fprintf(w, "%d functions are within the limits\n", count)
	return 0
}
