package lua

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// carriers are the ways to continue with a state elsewhere.
var carriers = map[string]func(s *State) (*State, error){
	"fork": (*State).Fork,
	"fork of a fork": func(s *State) (*State, error) {
		f, err := s.Fork()
		if err != nil {
			return nil, err
		}
		return f.Fork()
	},
	"snapshot": saveAndRestore,
	"snapshot of a fork": func(s *State) (*State, error) {
		f, err := s.Fork()
		if err != nil {
			return nil, err
		}
		return saveAndRestore(f)
	},
}

// saveAndRestore saves a state and restores it.
func saveAndRestore(s *State) (*State, error) {
	var data bytes.Buffer
	if err := s.Snapshot(&data); err != nil {
		return nil, err
	}
	return Restore(data.Bytes(), RestoreOptions{Libraries: All()})
}

// newPrintingState makes a state with all libraries that prints to out.
func newPrintingState(t testing.TB, out *bytes.Buffer) *State {
	t.Helper()
	s, err := newWorldOf(out)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newWorldOf(out *bytes.Buffer) (*State, error) {
	s := New(Options{Stdout: out, Seed: 7})
	return s, s.Open(All()...)
}

// perform runs a chunk and prints the error it ends with, if it does.
func perform(s *State, out *bytes.Buffer, source string) {
	s.opts.Stdout = out
	s.SetBudget(Budget{Steps: 5_000_000, Memory: 256 << 20})
	if _, err := run(s, source, "=test"); err != nil {
		out.WriteString("error: " + err.Error() + "\n")
		var e *Error
		if errors.As(err, &e) {
			out.WriteString(e.Traceback + "\n")
		}
	}
}

// TestTransferPrograms runs programs of testdata/transfer, whose two halves
// are separated by a line of dashes. The second half must print the same in a
// state that ran the first, in one that was carried elsewhere in between, and
// in the original once its copy has run.
func TestTransferPrograms(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("testdata/transfer/*.lua")
	if err != nil || len(programs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, path := range programs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".lua"), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			first, second, ok := strings.Cut(string(source), "\n----\n")
			if !ok {
				t.Fatal("no line of dashes")
			}
			if err := compareCarried(first, second); err != nil {
				t.Error(err)
			}
		})
	}
}

// compareCarried runs the two halves of a program with and without a move
// between them.
func compareCarried(first, second string) error {
	var before, want bytes.Buffer
	s, err := newWorldOf(&before)
	if err != nil {
		return err
	}
	perform(s, &before, first)
	perform(s, &want, second)
	for name, carry := range carriers {
		var repeated, after, original bytes.Buffer
		s, err := newWorldOf(&repeated)
		if err != nil {
			return err
		}
		perform(s, &repeated, first)
		c, err := carry(s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		perform(c, &after, second)
		perform(s, &original, second)
		switch {
		case repeated.String() != before.String():
			return fmt.Errorf("the first half gives\n%s\nand then\n%s", before.String(), repeated.String())
		case after.String() != want.String():
			return fmt.Errorf("%s: got\n%s\nwant\n%s", name, after.String(), want.String())
		case original.String() != want.String():
			return fmt.Errorf("%s: the original then gives\n%s\nwant\n%s", name, original.String(), want.String())
		}
	}
	return nil
}

// TestTransferAtRest checks that a running state cannot be copied.
func TestTransferAtRest(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	var failure error
	fn := NewFunc("test.fork", func(c *Call) error {
		_, failure = c.State().Fork()
		return nil
	})
	if _, err := s.Call(context.Background(), fn.Value()); err != nil {
		t.Fatal(err)
	}
	if failure == nil || !strings.Contains(failure.Error(), "a call is running") {
		t.Errorf("got %v", failure)
	}
}

type counter struct{ n int }

func (c *counter) Fork() (any, error) { return &counter{c.n}, nil }

// TestForkUserdata checks that userdata is copied, or named if it cannot be.
func TestForkUserdata(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	original := &counter{1}
	s.Globals().SetString("counter", NewUserdata(original, nil).Value())
	f, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	u, _ := f.Globals().GetString("counter").AsUserdata()
	u.Data.(*counter).n++
	if original.n != 1 {
		t.Error("the copy shares its data with the original")
	}
	inner := NewTable(0, 0)
	inner.SetString("file", NewUserdata(os.Stdin, nil).Value())
	list := NewTable(0, 0)
	list.Append(Int(1))
	list.Append(inner.Value())
	s.Globals().SetString("tracks", list.Value())
	_, err = s.Fork()
	var stuck *TransferError
	if !errors.As(err, &stuck) || stuck.Path != "globals.tracks[2].file" ||
		stuck.Problem != "a userdata of type *os.File cannot be forked" {
		t.Errorf("got %v", err)
	}
}

// TestForkBudget checks that a fork has the budget and the usage of the original.
func TestForkBudget(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.SetBudget(Budget{Steps: 10_000})
	if _, err := run(s, "for i = 1, 6000 do end", "=first"); err != nil {
		t.Fatal(err)
	}
	f, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if f.Usage() != s.Usage() {
		t.Errorf("usage is %+v in the copy and %+v in the original", f.Usage(), s.Usage())
	}
	var over *BudgetError
	if _, err := run(f, "for i = 1, 6000 do end", "=second"); !errors.As(err, &over) || over.Limit != LimitSteps {
		t.Errorf("got %v", err)
	}
	if _, err := run(s, "for i = 1, 3000 do end", "=second"); err != nil {
		t.Errorf("the original: %v", err)
	}
}

// TestForkParallel runs copies on goroutines of their own, for the race
// detector.
func TestForkParallel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newPrintingState(t, &out)
	s.opts.Stdout = nil
	if _, err := run(s, `
		words = {} for i = 1, 200 do words["w" .. i] = {name = "n" .. i, list = {i, i + 1}} end
		gen = coroutine.wrap(function() for k, v in pairs(words) do coroutine.yield(k .. v.name) end end)
		gen()
		function work() local n = 0 for i = 1, 100 do n = n + #gen() + #tostring(words) end
			for k, v in pairs(words) do v.name = v.name .. "x" words[k] = nil end
			for p, c in utf8.codes("äöü") do n = n + c end
			string.extra = n collectgarbage() return n end`, "=first"); err != nil {
		t.Fatal(err)
	}
	results := make(chan Value, 4)
	for range cap(results) {
		f, err := s.Fork()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			vals, err := f.Call(context.Background(), f.Globals().GetString("work"))
			if err != nil {
				vals = []Value{String(err.Error())}
			}
			results <- vals[0]
		}()
	}
	first := <-results
	for range cap(results) - 1 {
		if v := <-results; v != first || !v.isInt() {
			t.Errorf("copies give %v and %v", first, v)
		}
	}
	if !s.Globals().GetString("string").table().GetString("extra").IsNil() {
		t.Error("a copy changed the original's library")
	}
}
