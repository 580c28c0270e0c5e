package lua

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newFullState makes a state with all libraries that writes to out.
func newFullState(t testing.TB, out io.Writer) *State {
	t.Helper()
	s := New(Options{Stdout: out, Seed: 1, BinaryChunks: true})
	if err := s.Open(All()...); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a program in s.
func run(s *State, source, chunkname string) ([]Value, error) {
	fn, err := s.Load(source, chunkname)
	if err != nil {
		return nil, err
	}
	return s.Call(context.Background(), fn.Value())
}

// TestPrograms runs the programs of testdata and compares what they print with
// what the reference prints: with the file that was recorded, and with lua5.4
// itself where that is installed.
func TestPrograms(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(programs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	reference, _ := exec.LookPath("lua5.4")
	for _, path := range programs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".lua"), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(path, ".lua") + ".out")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			s := newFullState(t, &out)
			if _, err := run(s, string(source), "@"+filepath.Base(path)); err != nil {
				t.Errorf("%v", err)
			}
			if err := s.CloseFiles(); err != nil {
				t.Error(err)
			}
			compareLines(t, "the recorded output", out.String(), string(want))
			if reference != "" {
				cmd := exec.Command(reference, filepath.Base(path))
				cmd.Dir = filepath.Dir(path)
				printed, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				compareLines(t, "lua5.4", out.String(), string(printed))
			}
		})
	}
}

// compareLines reports the first lines in which two outputs differ.
func compareLines(t *testing.T, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	const enough = 3
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i, reported := 0, 0; i < max(len(gotLines), len(wantLines)) && reported < enough; i++ {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			reported++
			t.Errorf("line %d differs from %s\ngot  %q\nwant %q", i+1, name, g, w)
		}
	}
}
