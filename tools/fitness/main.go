// Command fitness measures every function: how long it is, how many ways lead
// through it, how deep it nests, how much it wants to be told. It fails with the
// functions that are past a bound. Run it from the module's root:
// `go run ./tools/fitness`. docs/decisions/007 tells why the bounds are counted as
// they are.
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

// sources lists the Go files that are ours to read: no tests, for a long story is
// told in order, nor the suites that tests share, and not lua/, whose loop is one
// switch on purpose.
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

// report measures the files and lists what is past a bound; it returns the exit
// code.
func report(w io.Writer, files []string) int {
	count, failed := 0, 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) { // deleted, and not yet committed
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
			for _, trouble := range f.troubles() {
				fmt.Fprintf(w, "%s: %s %s\n", f.at, f.name, trouble)
				failed++
			}
		}
	}
	if failed > 0 {
		fmt.Fprintf(w, "\n%d of %d functions want another shape\n", failed, count)
		return 1
	}
	fmt.Fprintf(w, "all %d functions are fit\n", count)
	return 0
}
