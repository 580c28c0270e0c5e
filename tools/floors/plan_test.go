package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Each testdata/*.txtar is a small module; its comment is what floors must say
// about it, one needed phrase a line. An empty comment means all is well.
func TestPlantedArrows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			story, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range story.Files {
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
			code := report(&out, packages, House())
			wants := strings.Split(strings.TrimSpace(string(story.Comment)), "\n")
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

func TestTheHouseStands(t *testing.T) {
	t.Parallel()
	packages, err := listPackages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range House().Check(packages) {
		t.Errorf("%s", p)
	}
}
