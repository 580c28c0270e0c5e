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
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// importsPath tells whether the Go file imports the path.
func importsPath(file, path string) bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(parsed.Imports, func(spec *ast.ImportSpec) bool {
		got, err := strconv.Unquote(spec.Path.Value)
		return err == nil && got == path
	})
}

func sortedKeys(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }

// draw prints every group with its packages and what each of them imports.
func draw(packages []Package) string {
	var out strings.Builder
	section := func(name string, has func(local string) bool) {
		for _, p := range packages {
			if has(p.local()) {
				fmt.Fprintf(&out, "%-12s %-32s -> %s\n", name, strings.TrimPrefix(p.local(), "internal/"), strings.Join(p.ourImports(), " "))
			}
		}
	}
	section("command", func(local string) bool { return local == Top })
	for _, g := range Groups {
		section(g.Name, func(local string) bool { return group(local) == g.Name })
	}
	section("independent", func(local string) bool { return within(Independent, local) })
	return out.String()
}

// local is the package's path inside the module.
func (p Package) local() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

func (p Package) ourImports() []string {
	var ours []string
	for _, imported := range p.Imports {
		if local, ok := strings.CutPrefix(imported, p.Module.Path+"/"); ok {
			ours = append(ours, strings.TrimPrefix(local, "internal/"))
		}
	}
	return ours
}

// fileImporting finds the file to open, relative to the module's root.
func (p Package) fileImporting(imported string) string {
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		if importsPath(file, imported) {
			if rel, err := filepath.Rel(p.Module.Dir, file); err == nil {
				return rel
			}
			return file
		}
	}
	return p.local()
}
