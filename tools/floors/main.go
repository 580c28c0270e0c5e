// Command floors checks that the house stands as it was drawn: imports between
// our packages point down only, rooms and doors do not import their neighbours,
// and each third-party library is used by one package. It reads the real imports,
// draws the map from them, and fails with the file, the arrow and the way to turn
// it. Run it from the module's root: `go run ./tools/floors`.
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
	os.Exit(report(os.Stdout, packages, House()))
}

// report draws the map and lists what is wrong; it returns the exit code.
func report(w io.Writer, packages []Package, plan Plan) int {
	fmt.Fprint(w, plan.Draw(packages))
	problems := plan.Check(packages)
	for _, p := range problems {
		fmt.Fprintf(w, "\n%s\n", p)
	}
	if len(problems) > 0 {
		fmt.Fprintf(w, "\n%d arrow(s) point the wrong way\n", len(problems))
		return 1
	}
	fmt.Fprintf(w, "\nall %d packages stand on their floors\n", len(packages))
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
