package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

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
