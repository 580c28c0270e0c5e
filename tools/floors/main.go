// Command floors checks the order of the packages: a group of internal/ imports only
// the groups that its line in groups.go allows, and each third-party library is used
// by one package. It reads the real imports, prints the map they make, and fails with
// the file, the import and what to do instead. Run it from the module's root:
// `go run ./tools/floors`.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	packages, err := listPackages(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "floors:", err)
		os.Exit(2)
	}
	os.Exit(report(os.Stdout, packages))
}

// report prints the map and lists what is wrong; it returns the exit code.
func report(w io.Writer, packages []Package) int {
	fmt.Fprint(w, draw(packages))
	problems := Check(packages)
	for _, p := range problems {
		fmt.Fprintf(w, "\n%s\n", p)
	}
	if len(problems) > 0 {
		fmt.Fprintf(w, "\n%d import(s) are against the order\n", len(problems))
		return 1
	}
	fmt.Fprintf(w, "\nall %d packages keep the order\n", len(packages))
	return 0
}

// Package is what the go command knows of one package of ours, tests left out.
type Package struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Module     struct{ Path, Dir string }
}

// listPackages asks the go command about every package below dir.
func listPackages(dir string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,Module", "./...")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []Package
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		packages = append(packages, p)
	}
}
