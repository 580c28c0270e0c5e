package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Each testdata/*.txtar is a small module; its comment is what floors must say
// about it, one needed phrase a line. An empty comment means that nothing is wrong.
func TestPlantedImports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			module, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range module.Files {
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			packages, err := listPackages(dir)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			code := report(&out, packages)
			wants := strings.Split(strings.TrimSpace(string(module.Comment)), "\n")
			if clean := wants[0] == ""; clean != (code == 0) {
				t.Fatalf("exit code %d:\n%s", code, &out)
			}
			for _, want := range wants {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &out)
				}
			}
		})
	}
}

func TestTheProgramKeepsTheOrder(t *testing.T) {
	t.Parallel()
	packages, err := listPackages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Check(packages) {
		t.Errorf("%s", p)
	}
}

func TestGroupsImportOnlyGroupsBelow(t *testing.T) {
	t.Parallel()
	for i, g := range Groups {
		for _, name := range strings.Fields(g.MayImport) {
			if at := slices.IndexFunc(Groups, func(g Group) bool { return g.Name == name }); at <= i {
				t.Errorf("%s may import %s, which is not below it", g.Name, name)
			}
		}
	}
}

// A group's README names its packages.
func TestReadmes(t *testing.T) {
	t.Parallel()
	for _, g := range Groups {
		folder := filepath.Join("../../internal", g.Name)
		page, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if lines := strings.Count(string(page), "\n"); lines > 15 {
			t.Errorf("%s/README.md has %d lines, 15 are the most", folder, lines)
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && len(goFiles(filepath.Join(folder, e.Name()))) > 0 && !strings.Contains(string(page), "`"+e.Name()+"`") {
				t.Errorf("%s/README.md does not name `%s`", folder, e.Name())
			}
		}
	}
}

func goFiles(folder string) []string {
	files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	return files
}
